# The application around examples/rails, and what a test does with it: ACTION [ID|NAME] [URL].

require 'active_record'
require 'action_view'
require 'rake'

recipe = ENV.fetch('RECIPE')
$LOAD_PATH.unshift("#{recipe}/lib")
ActiveRecord::Base.establish_connection(adapter: 'sqlite3', database: ENV.fetch('DATABASE'))
ActiveRecord::Base.logger = Logger.new($stderr, level: :error)

class ApplicationRecord < ActiveRecord::Base
  self.abstract_class = true
end

class ApplicationController; end

require "#{recipe}/app/models/feed"
require "#{recipe}/app/controllers/feeds_controller"

action, *args = ARGV
case action
when 'create'
  ActiveRecord::Schema.verbose = false
  ActiveRecord::Schema.define { create_table(:feeds) { |t| t.string :name; t.string :url } }
when 'save', 'die', 'rollback'
  Refreshd.client.define_singleton_method(:put) { |**| exit!(3) } if action == 'die'
  Feed.transaction do
    puts Feed.create!(name: args[0], url: args[1]).id
    $stdout.flush
    raise ActiveRecord::Rollback if action == 'rollback'
  end
when 'reconcile'
  Rake::Task.define_task(:environment)
  load "#{recipe}/lib/tasks/feeds.rake"
  Rake::Task['feeds:reconcile'].invoke
when 'page'
  controller = FeedsController.new
  controller.index
  assigns = controller.instance_variables.to_h { |name| [name.to_s.delete('@'), controller.instance_variable_get(name)] }
  lookup = ActionView::LookupContext.new(["#{recipe}/app/views"])
  puts ActionView::Base.with_empty_template_cache.new(lookup, assigns, nil).render(template: 'feeds/index')
when 'delete'
  Feed.find(args[0]).destroy!
when 'lose'
  Feed.delete_all
end
