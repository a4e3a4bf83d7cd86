class FeedsController < ApplicationController
  def index
    @feeds = Feed.order(:name)
  end
end
