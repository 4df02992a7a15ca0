# SELECT pg_advisory_lock(1)
class Worker < ApplicationRecord
=begin
  connection.execute("SELECT pg_advisory_lock(2)")
=end
  def import(id)
    ratio = 100 % (id + 1)
    quote = ?'
    Worker.with_advisory_lock("ruby:#{id}", timeout_seconds: 0) { work(ratio, quote) }
  end

  def release
    connection.select_value("SELECT pg_advisory_unlock(42424242)")
  end

  def take
    connection.select_value("SELECT pg_try_advisory_lock(42424242)")
  end
end
