package Lock;
# SELECT pg_advisory_lock(1)
sub run {
    my ($self) = @_;
    $self->db->query(q{SELECT pg_advisory_xact_lock(1700001)}); # expect: unregistered-id
    $self->db->query("SELECT pg_advisory_xact_lock(hashtext('other:1'))"); # expect: hashtext, unregistered-label
    $self->db->query(<<"SQL");
SELECT pg_advisory_xact_lock(1700002) -- expect: unregistered-id
SQL
}

=head1 SELECT pg_advisory_lock(1)

=cut

1;
