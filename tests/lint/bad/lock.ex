defmodule App.Lock do
  @moduledoc """
  SELECT pg_advisory_lock(1)
  """
  @stray 3000001

  def stray(repo) do
    repo.query!("SELECT pg_advisory_xact_lock($1)", [@stray]) # expect: unregistered-id
    repo.query!("SELECT pg_advisory_xact_lock(#{@stray})") # expect: unregistered-id
    repo.one(from(l in Lock, select: fragment("pg_try_advisory_xact_lock(?)", 3000002))) # expect: try-result-ignored, unregistered-id
    repo.query!(~s[SELECT pg_advisory_xact_lock(hashtext('sweep'))]) # expect: hashtext, unregistered-label
  end

  def trap(repo) do
    repo.query!("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    repo.query!("SELECT pg_advisory_xact_lock(51515151)") # expect: snapshot-trap
  end
end
