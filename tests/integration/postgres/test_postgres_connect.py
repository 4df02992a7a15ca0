"""The ways to a server that libpq offers work as they do for psql."""

import os
import shutil
import subprocess

import pytest

import hf
from hf import Status
from strangers import sessions


def holds_and_frees(db, url, **options):
    with hf.Store(url, **options) as store:
        lock = store.acquire("job")
        assert db.holders(lock.key)
        lock.end()


def test_connection_string(db):
    server = db.server
    holds_and_frees(db, f"host={server.folder} port={server.port} user=app dbname={db.name}")


def test_service_file_names_the_server(db, tmp_path, monkeypatch):
    services = tmp_path / "services.conf"
    services.write_text(f"[ledger]\nhost={db.server.folder}\nport={db.server.port}\nuser=app\ndbname={db.name}\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    holds_and_frees(db, "service=ledger")
    holds_and_frees(db, "postgresql:///?service=ledger")


def test_server_without_a_free_connection_is_not_blamed_on_the_address(own_pg):
    own_pg.extra_settings = "max_connections = 9\nsuperuser_reserved_connections = 5\n"
    own_pg.restart()
    db = own_pg.create_database()
    with sessions(db, 4):
        error = hf.open_error(db.url())
    assert error.status is Status.UNREACHABLE
    assert error.sqlstate == "53300"
    assert "max_connections" in error.hint and "port" not in error.hint


def test_missing_service_is_one_clear_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "none.conf"))
    error = hf.open_error("service=ledger")
    assert error.status in (Status.UNREACHABLE, Status.INVALID)
    assert "\n" not in error.message and error.hint


def test_password_file_opens_a_guarded_role(pg, tmp_path):
    passwords = tmp_path / "pgpass"
    passwords.write_text("*:*:*:guarded:open sesame\n")
    passwords.chmod(0o600)
    url = pg.url(user="guarded", host="127.0.0.1", passfile=str(passwords))
    with hf.Store(url) as store:
        store.acquire("job").end()
        assert "sesame" not in store.name


@pytest.fixture
def tls_pg(own_pg):
    key, certificate = own_pg.data / "server.key", own_pg.data / "server.crt"
    subprocess.run(["openssl", "req", "-new", "-x509", "-days", "2", "-nodes", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate), "-keyout", str(key)],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    key.chmod(0o600)
    if os.geteuid() == 0:
        for file in (key, certificate):
            shutil.chown(file, own_pg.data.owner(), own_pg.data.group())
    own_pg.extra_settings += "ssl = on\n"
    own_pg.restart()
    return own_pg


def test_tls_is_used_and_the_certificate_checked(tls_pg, tmp_path):
    certificate = shutil.copy(tls_pg.data / "server.crt", tmp_path / "root.crt")
    url = tls_pg.url(user="app", host="127.0.0.1", sslmode="verify-full", sslrootcert=certificate)
    with hf.Store(url) as store:
        lock = store.acquire("job")
        encrypted = tls_pg.sql("select s.ssl from pg_stat_ssl s join pg_locks l using (pid)"
                               " where l.locktype = 'advisory' and l.granted")
        assert encrypted and all(row == (True,) for row in encrypted)
        lock.end()


def test_wrong_certificate_is_refused(tls_pg, tmp_path):
    stranger = tmp_path / "stranger.crt"
    subprocess.run(["openssl", "req", "-new", "-x509", "-days", "2", "-nodes", "-subj", "/CN=stranger",
                    "-out", str(stranger), "-keyout", str(tmp_path / "stranger.key")],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    error = hf.open_error(tls_pg.url(user="app", host="127.0.0.1", sslmode="verify-full",
                                     sslrootcert=str(stranger)))
    assert error.status is Status.UNREACHABLE
    assert "certificate" in error.message
