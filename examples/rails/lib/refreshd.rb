# frozen_string_literal: true

require 'json'
require 'redis'
require 'securerandom'
require 'zlib'

# What an application says to refreshd and reads of it, over the lists and keys of docs/wire.md, with the redis gem 4.8 or 5.
class Refreshd
  Refused, NoReply = Array.new(2) { Class.new(StandardError) }
  FIELDS = %i[rev refresh_disabled_until_update attempt_uid processing_at parked_by refresh_at refresh_why last_success_at user_friendly_status progress
              refresh_disabled_user_friendly_reason].freeze
  Model = Struct.new(*FIELDS) do
    def state
      return 'disabled' if refresh_disabled_until_update
      return processing_at ? 'processing' : 'queued' if attempt_uid
      return 'finished' unless refresh_at
      parked_by ? 'parked' : refresh_at > Time.now.utc.strftime('%FT%T.%LZ') ? 'scheduled' : 'due'
    end
  end

  def self.client = Thread.current[:refreshd] ||= new # finds Redis in REDIS_URL; one for each thread, as it waits for replies

  def initialize(redis: Redis.new, queue: 'bigtables', timeout: 2)
    @redis, @queue, @timeout = redis, queue, timeout
  end

  def put(**definition) = ask(type: 'put', **definition)
  def run(uid) = ask(type: 'run', uid: uid)
  def remove(uid) = ask(type: 'remove', uid: uid)

  # Returns a reply for each definition, those of refused ones too.
  def put_many(definitions) = definitions.each_slice(250).flat_map { |some| exchange(some.map { |one| { type: 'put', **one } }) }

  # The model as it is now; nil: there is none.
  def get(uid) = Model.new(*@redis.hmget("#{home(uid)}:model:#{uid}", *FIELDS.map(&:to_s))).then { |model| model if model.rev }

  # The uids of all models with a label, such as "kind=feed".
  def uids(label) = homes.flat_map { |home| @redis.sscan_each("#{home}:label:#{label}").to_a }.uniq

  private

  def parts = @parts ||= @redis.hget("{#{@queue}}:settings", 'parts').to_i
  def homes = parts > 1 ? Array.new(parts) { |i| "{#{@queue}:#{i}}" } : [@queue]
  def home(uid) = homes[Zlib.crc32(uid) % homes.size]
  def ask(**command) = exchange([command]).first.tap { |reply| raise Refused, reply['reason'] if reply['outcome'] == 'refused' }

  # Pushes each command to the part of its model, and waits there for its reply.
  def exchange(commands)
    lists = commands.map { |command| "#{home(command[:uid])}:reply:#{SecureRandom.uuid}" }
    commands.zip(lists) do |command, list|
      @redis.rpush("#{home(command[:uid])}-control", JSON.generate({ **command, command_id: list[-36..], reply_to: list, by: 'rails' }))
    end
    lists.map do |list|
      _, reply = @redis.blpop(list, timeout: @timeout)
      reply ? JSON.parse(reply) : raise(NoReply, "no poller has replied at #{list} within #{@timeout} s")
    end
  end
end
