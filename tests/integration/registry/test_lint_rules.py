"""holdfast registry lint: two outages that people have, as programs write them, and what mends each."""
import json

import pytest

EXIT_OK, EXIT_FINDINGS = 0, 1

# Each takes a lock after it read what it then changes. LOCK stands for the statement with the lock, READ for the read.
STALE = {
    'a.go': ("""package store
func (s *Store) Reserve(ctx context.Context, tx pgx.Tx, id int64) error {
	FIRST
	SECOND
	_, err := tx.Exec(ctx, `UPDATE flights SET seats = seats - 1 WHERE id = $1`, id)
	return err
}
""",
        """if err := tx.QueryRow(ctx, `SELECT seats FROM flights WHERE id = $1`, id).Scan(&left); err != nil {
		return err
	}""",
        """if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, id); err != nil {
		return err
	}"""),
    'a.ts': ("""export async function reserve(client: PoolClient, id: number) {
  FIRST
  SECOND
  await client.query('UPDATE flights SET seats = seats - 1 WHERE id = $1', [id]);
}
""",
        "const { rows } = await client.query('SELECT seats FROM flights WHERE id = $1', [id]);",
        "await client.query('SELECT pg_advisory_xact_lock($1)', [id]);"),
    'prisma.ts': ("""export async function reserve(id: string) {
  await client.$transaction(async (tx) => {
    FIRST
    SECOND
    if (!booking) await tx.booking.create({ data: { id } });
  });
}
""",
        'const booking = await tx.booking.findFirst({ where: { id } });',
        'await tx.$executeRaw`SELECT pg_advisory_xact_lock(hashtext(${id}))`;'),
    'a.py': ("""def reserve(session, flight_id):
    FIRST
    SECOND
    flight.seats -= 1
    session.add(flight)
    session.commit()
""",
        'flight = session.query(Flight).filter_by(id=flight_id).one()',
        'session.execute(text("SELECT pg_advisory_xact_lock(:id)"), {"id": flight_id})'),
    'django.py': ("""def pay(cursor, order_id):
    with transaction.atomic():
        FIRST
        SECOND
        order.status = "paid"
        order.save()
""",
        'order = Order.objects.get(pk=order_id)',
        'cursor.execute("SELECT pg_advisory_xact_lock(%s)", [order_id])'),
    'A.java': ("""class Repo {
  @Transactional
  void reserve(long id) {
    FIRST
    SECOND
    flight.setSeats(flight.getSeats() - 1);
    flightRepository.save(flight);
  }
}
""",
        'Flight flight = flightRepository.findById(id).orElseThrow();',
        'jdbcTemplate.execute("SELECT pg_advisory_xact_lock(" + id + ")");'),
    'a.rb': ("""def reserve(id)
  FIRST
  SECOND
  flight.update!(seats: flight.seats - 1)
end
""",
        'flight = Flight.find(id)',
        'connection.execute("SELECT pg_advisory_xact_lock(#{id})")'),
    'A.cs': ("""class Repo {
  async Task Reserve(long id) {
    FIRST
    SECOND
    flight.Seats--;
    await _context.SaveChangesAsync();
  }
}
""",
        'var flight = await _context.Flights.FirstAsync(f => f.Id == id);',
        'await _context.Database.ExecuteSqlRawAsync("SELECT pg_advisory_xact_lock({0})", id);'),
    'a.rs': ("""async fn reserve(tx: &mut Transaction<'_, Postgres>, id: i64) -> Result<()> {
    FIRST
    SECOND
    sqlx::query("UPDATE flights SET seats = seats - 1 WHERE id = $1").bind(id).execute(&mut **tx).await?;
    Ok(())
}
""",
        'let seats: i32 = sqlx::query_scalar("SELECT seats FROM flights").fetch_one(&mut **tx).await?;',
        'sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(id).execute(&mut **tx).await?;'),
    'a.php': ("""<?php
function reserve($id) {
  FIRST
  SECOND
  $flight->seats--;
  $flight->save();
}
""",
        '$flight = Flight::find($id);',
        "DB::statement('SELECT pg_advisory_xact_lock(?)', [$id]);"),
    'a.ex': ("""defmodule R do
  def reserve(id) do
    FIRST
    SECOND
    Repo.update!(Flight.changeset(flight, %{seats: flight.seats - 1}))
  end
end
""",
        'flight = Repo.get!(Flight, id)',
        'Repo.query!("SELECT pg_advisory_xact_lock($1)", [id])'),
}

# A call that forgets to ask whether the lock was taken, and one that asks.
FORGOTTEN = {
    'a.go': ("""package p
func cron(conn *pgx.Conn) error {
	CALL
	return run()
}
""",
        """if _, err := conn.Exec(ctx, "SELECT pg_try_advisory_lock($1)", cronLock); err != nil {
		return err
	}""",
        """if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", cronLock).Scan(&got); err != nil || !got {
		return err
	}"""),
    'a.ts': ("""export async function cron(client: PoolClient) {
  CALL
  await run();
}
""",
        "await client.query('SELECT pg_try_advisory_lock($1)', [CRON]);",
        """const { rows } = await client.query('SELECT pg_try_advisory_lock($1) AS got', [CRON]);
  if (!rows[0].got) return;"""),
    'a.py': ("""def cron(conn):
    CALL
    run()
""",
        'conn.execute(text("SELECT pg_try_advisory_lock(:k)"), {"k": CRON})',
        """if not conn.execute(text("SELECT pg_try_advisory_lock(:k)"), {"k": CRON}).scalar():
        return"""),
    'A.java': ("""class A {
  void cron() {
    CALL
    run();
  }
}
""",
        'jdbcTemplate.queryForObject("SELECT pg_try_advisory_lock(424242)", Boolean.class);',
        'if (!jdbcTemplate.queryForObject("SELECT pg_try_advisory_lock(424242)", Boolean.class)) return;'),
    'a.rb': ("""def cron
  CALL
  run_jobs
end
""",
        'connection.execute("SELECT pg_try_advisory_lock(424242)")',
        'return unless connection.select_value("SELECT pg_try_advisory_lock(424242)")'),
    'A.cs': ("""class A {
  async Task Cron() {
    CALL
    await Run();
  }
}
""",
        'await conn.ExecuteAsync("SELECT pg_try_advisory_lock(424242)");',
        'if (!await conn.ExecuteScalarAsync<bool>("SELECT pg_try_advisory_lock(424242)")) return;'),
    'a.rs': ("""async fn cron(conn: &mut PgConnection) -> Result<()> {
    CALL
    run().await
}
""",
        'sqlx::query("SELECT pg_try_advisory_lock(424242)").execute(&mut *conn).await?;',
        """let got: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock(424242)").fetch_one(&mut *conn).await?;
    if !got { return Ok(()); }"""),
    'a.php': ("""<?php
function cron() {
  CALL
  run();
}
""",
        "DB::statement('SELECT pg_try_advisory_lock(424242)');",
        "if (!DB::selectOne('SELECT pg_try_advisory_lock(424242) AS got')->got) return;"),
    'a.ex': ("""defmodule R do
  def cron do
    CALL
    run()
  end
end
""",
        'Repo.query!("SELECT pg_try_advisory_lock(424242)")',
        """case Repo.query!("SELECT pg_try_advisory_lock(424242)") do
      %{rows: [[true]]} -> run()
    end"""),
}


@pytest.fixture
def found(holdfast, tmp_path):
    """Does a rule find something in this text, with the default confidence?"""
    def run(rule, name, text):
        (tmp_path / name).write_text(text)
        done = holdfast("registry", "lint", "--json", "--rule", rule, name, cwd=tmp_path)
        assert done.code in (EXIT_OK, EXIT_FINDINGS), done.err
        return len(json.loads(done.out)["findings"]) > 0

    return run


@pytest.mark.parametrize("name", STALE)
def test_a_lock_after_the_read_is_found_and_one_before_it_is_not(found, name):
    text, read, lock = STALE[name]
    assert found("lock-after-read", name, text.replace("FIRST", read).replace("SECOND", lock))
    assert not found("lock-after-read", name, text.replace("FIRST", lock).replace("SECOND", read))


@pytest.mark.parametrize("name", FORGOTTEN)
def test_a_try_that_nobody_looks_at_is_found_and_one_that_is_asked_is_not(found, name):
    text, forgotten, asked = FORGOTTEN[name]
    assert found("try-result-ignored", name, text.replace("CALL", forgotten))
    assert not found("try-result-ignored", name, text.replace("CALL", asked))


@pytest.mark.parametrize("name,text", [
    ("a.rs", 'fn sql(&self) -> String {\n    format!("SELECT pg_try_advisory_lock({})", self.lock_id)\n}\n'),
    ("a.py", "def test_it(cursor):\n    execute.assert_called_with('SELECT pg_try_advisory_lock(%s)', (ANY,))\n"),
])
def test_sql_that_is_only_made_or_expected_of_a_mock_ignores_no_result(found, name, text):
    assert not found("try-result-ignored", name, text)


@pytest.mark.parametrize("name,text", [
    ("a.rb", "def lock\n  @lock = connection.exec('SELECT pg_try_advisory_lock($1)', args)\n  acquired?\nend\n"),
    ("a.kt", 'fun f() {\n  val got = exec("SELECT pg_try_advisory_xact_lock(7)") { rows -> rows.getBoolean(1) }\n  if (!got) return\n}\n'),
    ("a.ts", "async function f() {\n  const {\n    rows: [{ locked }],\n  } = await c.query<{ locked: boolean }>(\n"
             "    'SELECT pg_try_advisory_lock($1) AS locked', [7],\n  );\n  if (!locked) throw new Error('busy');\n}\n"),
])
def test_a_result_that_a_variable_gets_is_not_ignored(found, name, text):
    assert not found("try-result-ignored", name, text)
