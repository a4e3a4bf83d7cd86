# What examples/rails says and reads over the wire, without Rails.

require "#{ENV.fetch('RECIPE')}/lib/refreshd"

wire = Refreshd.client
models = (1..300).map { |i| { uid: "m#{i}", rrule: 'every day at 6 AM', labels: { kind: i.odd? ? 'odd' : 'even' } } }
replies = wire.put_many(models + [{ uid: 'x', rrule: 'every blue moon' }])
puts replies.count { |reply| reply["outcome"] == "applied" }, replies.last["outcome"], replies.last['uid']
puts wire.uids('kind=odd').size, wire.get('m1').state, wire.get('nobody').inspect
puts wire.run('m2')['outcome'], wire.get('m2').state
puts wire.remove('m3')['outcome'], wire.get('m3').inspect
begin
  wire.run('m3')
rescue Refreshd::Refused => refused
  puts refused.class
end
