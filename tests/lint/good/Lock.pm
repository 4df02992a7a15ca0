package Lock;
# SELECT pg_advisory_lock(1)
sub run {
    my ($self) = @_;
    return unless $self->db->query(q{SELECT pg_try_advisory_xact_lock(51515151)})->array->[0];
}

=head1 SELECT pg_advisory_lock(1)

=cut

1;
