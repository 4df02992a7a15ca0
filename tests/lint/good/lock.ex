defmodule App.Lock do
  @doc "SELECT pg_advisory_lock(1)"
  def close(repo) do
    quote = ?"
    repo.query!("SELECT pg_advisory_xact_lock(51515151)")
    quote
  end

  # SELECT pg_advisory_lock(2)
  def free(repo) do
    %{rows: [[true]]} = repo.query!("SELECT pg_advisory_unlock(42424242)")
  end
end
