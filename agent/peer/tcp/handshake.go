package tcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent/peer"
)

// The handshake's three messages have one size each, docs/formats/peer.md.
const (
	magic       = "SILTPEER"
	version     = 1
	nonceBytes  = 32
	proofBytes  = sha256.Size
	helloBytes  = len(magic) + 2 + 1 + 16 + 8 + 8 + nonceBytes
	answerBytes = len(magic) + 2 + 16 + 8 + nonceBytes + proofBytes
)

// Labels of the proofs, so that neither can pass for the other.
const (
	acceptorLabel = "siltstone peer acceptor 1"
	diallerLabel  = "siltstone peer dialler 1"
)

// identity is what an agent shows of itself, and asks of others.
type identity struct {
	self    siltstone.Incarnation
	cluster siltstone.ClusterID
	secret  []byte
}

// hello is what a dialler says first.
type hello struct {
	lane     peer.Lane
	cluster  siltstone.ClusterID
	from, to siltstone.Incarnation
}

// dial is the handshake of who has dialled. It is over when the other end has
// said that it lives: then it takes messages.
func (id identity) dial(conn io.ReadWriter, to siltstone.Incarnation, lane peer.Lane) error {
	said := append(make([]byte, 0, helloBytes+answerBytes), magic...)
	said = binary.BigEndian.AppendUint16(said, version)
	said = append(said, byte(lane))
	said = append(said, id.cluster[:]...)
	said = binary.BigEndian.AppendUint64(said, uint64(id.self))
	said = binary.BigEndian.AppendUint64(said, uint64(to))
	said = appendNonce(said)
	if _, err := conn.Write(said); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	said = said[:helloBytes+answerBytes]
	answer := said[helloBytes:]
	if _, err := io.ReadFull(conn, answer); err != nil {
		return fmt.Errorf("answer: %w", unexpected(err))
	}
	if err := checkVersion(answer); err != nil {
		return err
	}
	if err := id.checkCluster(siltstone.ClusterID(answer[10:26])); err != nil {
		return err
	}
	unproven := said[:len(said)-proofBytes]
	if !hmac.Equal(said[len(unproven):], id.proof(acceptorLabel, unproven)) {
		return errSecret
	}
	if is := siltstone.Incarnation(binary.BigEndian.Uint64(answer[26:])); is != to {
		return fmt.Errorf("%w: %v is there", errAnother, is)
	}
	if _, err := conn.Write(id.proof(diallerLabel, said)); err != nil {
		return fmt.Errorf("proof: %w", err)
	}
	var sign [1]byte
	if _, err := io.ReadFull(conn, sign[:]); err != nil {
		return fmt.Errorf("not welcomed: %w", unexpected(err))
	}
	if sign[0] != alive {
		return fmt.Errorf("%w: welcomed by %#x", errMalformed, sign[0])
	}
	return nil
}

// accept is the handshake of who was dialled. What it says of itself does not
// depend on what the dialler says, who so learns why it is not taken.
func (id identity) accept(conn io.ReadWriter) (hello, error) {
	said := make([]byte, helloBytes, helloBytes+answerBytes)
	if _, err := io.ReadFull(conn, said); err != nil {
		return hello{}, fmt.Errorf("hello: %w", unexpected(err))
	}
	wrong := checkVersion(said)
	if wrong != nil && string(said[:len(magic)]) != magic {
		return hello{}, wrong
	}
	h := parseHello(said)
	said = append(said, magic...)
	said = binary.BigEndian.AppendUint16(said, version)
	said = append(said, id.cluster[:]...)
	said = binary.BigEndian.AppendUint64(said, uint64(id.self))
	said = appendNonce(said)
	said = append(said, id.proof(acceptorLabel, said)...)
	if _, err := conn.Write(said[helloBytes:]); err != nil {
		return h, fmt.Errorf("answer: %w", err)
	}
	if wrong != nil {
		return h, wrong
	}
	if err := id.check(h); err != nil {
		return h, err
	}
	var proof [proofBytes]byte
	if _, err := io.ReadFull(conn, proof[:]); err != nil {
		return h, fmt.Errorf("proof: %w", unexpected(err))
	}
	if !hmac.Equal(proof[:], id.proof(diallerLabel, said)) {
		return h, errSecret
	}
	return h, nil
}

func parseHello(b []byte) hello {
	return hello{
		lane:    peer.Lane(b[10]),
		cluster: siltstone.ClusterID(b[11:27]),
		from:    siltstone.Incarnation(binary.BigEndian.Uint64(b[27:])),
		to:      siltstone.Incarnation(binary.BigEndian.Uint64(b[35:])),
	}
}

// check says whether a hello is one to this agent.
func (id identity) check(h hello) error {
	if err := id.checkCluster(h.cluster); err != nil {
		return err
	}
	if h.to != id.self {
		return fmt.Errorf("%w: %v looks for %v", errAnother, h.from, h.to)
	}
	if h.from == 0 || h.lane >= peer.Lanes {
		return fmt.Errorf("%w: hello of %v on lane %d", errMalformed, h.from, uint8(h.lane))
	}
	return nil
}

func (id identity) checkCluster(other siltstone.ClusterID) error {
	if other != id.cluster {
		return fmt.Errorf("an agent of cluster %v: %w", other, siltstone.ErrForeign)
	}
	return nil
}

// checkVersion checks what both a hello and an answer begin with.
func checkVersion(b []byte) error {
	if string(b[:len(magic)]) != magic {
		return fmt.Errorf("%w: no agent of Siltstone", errMalformed)
	}
	if v := binary.BigEndian.Uint16(b[len(magic):]); v != version {
		return fmt.Errorf("%w: %d, and not %d", errVersion, v, version)
	}
	return nil
}

// proof shows that who makes it knows the secret, and heard the same.
func (id identity) proof(label string, said []byte) []byte {
	mac := hmac.New(sha256.New, id.secret)
	_, _ = io.WriteString(mac, label)
	_, _ = mac.Write(said)
	return mac.Sum(nil)
}

func appendNonce(b []byte) []byte {
	var nonce [nonceBytes]byte
	_, _ = rand.Read(nonce[:]) // never fails: it would end the process
	return append(b, nonce[:]...)
}
