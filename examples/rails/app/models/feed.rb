require 'refreshd'

# A feed is a row, and a model of refreshd that follows the row after each commit.
class Feed < ApplicationRecord
  after_commit :sync

  # Saves all models again, and removes those without a feed.
  def self.reconcile
    known = Refreshd.client.uids('kind=feed') # read before the rows, so that the model of a new row stays
    feeds = all.to_a
    refused = Refreshd.client.put_many(feeds.map(&:definition)).select { |reply| reply['outcome'] == 'refused' }
    (known - feeds.map(&:uid)).each { |uid| Refreshd.client.remove(uid) }
    raise Refreshd::Refused, refused.map { |reply| "#{reply['uid']}: #{reply['reason']}" }.join("\n") if refused.any?
  end

  def uid = "feed_#{id}"
  def definition = { uid: uid, payload: { input_url: url }, rrule: 'every day at 6 AM', labels: { kind: 'feed' } }

  # What refreshd knows of the feed now; nil: nothing yet.
  def model = Refreshd.client.get(uid)

  private

  # Saves or removes the model. The row is committed: what fails here, feeds:reconcile does later.
  def sync
    feed = Feed.find_by(id: id) # as it was committed last, perhaps by another request
    feed ? Refreshd.client.put(**feed.definition, refresh: 'now') : Refreshd.client.remove(uid)
  rescue StandardError => error
    logger.error("#{uid}: the row is committed, its model is not saved yet: #{error.message}")
  end
end
