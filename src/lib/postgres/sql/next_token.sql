SELECT pg_catalog.nextval('holdfast.token')
