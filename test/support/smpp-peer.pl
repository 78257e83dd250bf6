#!/usr/bin/perl
# A message centre based on Net::SMPP (Debian: libnet-smpp-perl). Usage: smpp-peer.pl PORT PASSWORD
# It prints each PDU that it reads as a line of JSON, with strings in hexadecimal. The end of a number decides what
# happens: 0001 rejects, 0002 throttles, 0003 does not respond, 0004 cuts the connection. Others are accepted, and a
# receipt follows: only its text for …5, only its parameters for …6, both otherwise.
use strict;
use warnings;
use JSON::PP;
use Net::SMPP;

my ($port, $password) = @ARGV;
my $json = JSON::PP->new->canonical;
$| = 1;
$SIG{PIPE} = 'IGNORE';

my $server = Net::SMPP->new_listen('127.0.0.1', port => $port, smpp_version => 0x34) or die "cannot listen on $port: $!";
print $json->encode({ listening => $port + 0 }), "\n";

my $messages = 0;
while (my $peer = $server->accept) {
  $peer->set_version(0x34);
  serve($peer);
  close $peer;
  print $json->encode({ closed => 1 }), "\n";
}

sub serve {
  my ($peer) = @_;
  while (my $pdu = $peer->read_pdu) {
    my %line = (command => Net::SMPP::pdu_tab->{ $pdu->{cmd} }{cmd}, status => $pdu->{status} + 0);
    for my $field (qw(system_id password source_addr destination_addr short_message validity_period 5120 5121)) {
      $line{$field} = unpack 'H*', $pdu->{$field} if defined $pdu->{$field};
    }
    for my $field (qw(source_addr_ton source_addr_npi dest_addr_ton dest_addr_npi esm_class registered_delivery data_coding interface_version)) {
      $line{$field} = $pdu->{$field} + 0 if defined $pdu->{$field};
    }
    print $json->encode(\%line), "\n";

    my %seq = (seq => $pdu->{seq});
    if ($line{command} eq 'bind_transceiver') {
      my $good = $pdu->{password} eq $password;
      $peer->bind_transceiver_resp(%seq, system_id => 'perl', status => $good ? 0 : 0x0e);
      return unless $good;
      $peer->enquire_link(async => 1);
    }
    elsif ($line{command} eq 'enquire_link') { $peer->enquire_link_resp(%seq) }
    elsif ($line{command} eq 'unbind') { $peer->unbind_resp(%seq); return }
    elsif ($line{command} eq 'submit_sm') { submitted($peer, $pdu) or return }
  }
}

sub submitted {
  my ($peer, $pdu) = @_;
  my $to = $pdu->{destination_addr};
  my %seq = (seq => $pdu->{seq});
  return 0 if $to =~ /0004$/;
  return 1 if $to =~ /0003$/;
  if ($to =~ /000([12])$/) {
    $peer->submit_sm_resp(%seq, message_id => '', status => $1 == 1 ? 0x0b : 0x58);
    return 1;
  }
  my $id = sprintf 'perl-%d', ++$messages;
  $peer->submit_sm_resp(%seq, message_id => $id);
  my $text = $to =~ /6$/ ? '' : "id:$id sub:001 dlvrd:000 submit date:2611201200 done date:2611201201 stat:UNDELIV err:034 text:Your code is";
  my @parameters = $to =~ /5$/ ? () : (receipted_message_id => "$id\0", message_state => pack 'C', 5);
  $peer->deliver_sm(async => 1, esm_class => 4, source_addr => $to, destination_addr => $pdu->{source_addr}, short_message => $text, @parameters);
  return 1;
}
