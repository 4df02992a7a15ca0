"""What tests do to the schema behind the library's back."""

import hf


def make_newer(db):
    """As if a later program had been here."""
    assert db.value("select holdfast.schema_version()") == hf.SCHEMA_VERSION
    db.sql("create or replace function holdfast.schema_version() returns int language sql immutable"
           f" as 'select {hf.SCHEMA_VERSION + 1}'")
