def stale(conn, id)
  job = Job.find(id)
  conn.execute("SELECT pg_advisory_xact_lock(51515151)") # expect: lock-after-read
  Job.update_all(runs: job.runs + 1)
end
