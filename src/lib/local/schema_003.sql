-- Tracing: the span of the hold, so that the span of a wait can link to it.

ALTER TABLE holders ADD COLUMN traceparent TEXT;
