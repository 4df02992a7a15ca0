defmodule Pool do
  def hold do
    %{rows: [[got]]} = Repo.query!("SELECT pg_try_advisory_lock(42424242)") # expect: lock-on-pool
    %{rows: [[freed]]} = Repo.query!("SELECT pg_advisory_unlock(42424242)")
    got and freed
  end
end
