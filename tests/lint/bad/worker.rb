# frozen_string_literal: true

class Worker < ApplicationRecord
  STRAY = 5_550_001

  def stray
    connection.execute("SELECT pg_advisory_xact_lock(#{STRAY})") # expect: unregistered-id
    connection.execute(<<~SQL)
      SELECT pg_advisory_xact_lock(5550002) -- expect: unregistered-id
    SQL
    connection.select_value(%q(SELECT pg_try_advisory_xact_lock(hashtext('nobody')))) # expect: hashtext, unregistered-label
  end

  def wrapped(id)
    Worker.with_advisory_lock("mutex") { work } # expect: generic-label, unregistered-label
    Worker.with_advisory_lock "sync-#{id}" do # expect: unregistered-label
      work
    end
    Worker.with_advisory_lock("import:#{id}", transaction: true) { work } # expect: wrong-derivation, wrong-lifetime
  end

  def trap
    transaction(isolation: :repeatable_read) do
      connection.execute("SELECT pg_advisory_xact_lock(51515151)") # expect: snapshot-trap
    end
  end

  def never_unlocked
    connection.execute("SELECT pg_advisory_lock(42424242)") # expect: session-lock-without-unlock
  end

  def sequel
    DB.get(Sequel.function(:pg_try_advisory_xact_lock, 6_660_001)) # expect: unregistered-id
  end
end
