namespace :feeds do
  desc 'Saves the models of all feeds, and removes those without a feed. Run it every few minutes by cron.'
  task(reconcile: :environment) { Feed.reconcile }
end
