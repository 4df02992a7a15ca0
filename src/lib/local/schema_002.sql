-- Leases: no lock of the kernel is held while one lasts, so that a process that is stopped loses it as
-- one that is cut off from a server does. The keys are in holders. This says until when they are leased,
-- by the clock that counts from the boot, which all processes share and nobody can set.

CREATE TABLE leases (
    seat INTEGER PRIMARY KEY,
    store INTEGER NOT NULL, -- a random number: all leases of one open store are renewed together
    lease_ms INTEGER NOT NULL,
    until_ms INTEGER NOT NULL
);
CREATE INDEX leases_store ON leases (store);
