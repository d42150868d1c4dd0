package group

import (
	"bytes"
	"container/list"
	"fmt"
	"slices"
)

// member is one who has joined a group, or waits to.
type member struct {
	id           string
	instance     *string
	client, host string
	sessionMS    int32
	rebalanceMS  int32
	protocols    []Protocol // best first, no name twice
	// folded: protocols is only what the fold keeps, the one that was chosen.
	folded     bool
	assignment []byte // of the generation, once that is stable
	came       uint64 // orders members
	// fresh: has not been in a generation yet. It has no id to send heartbeats
	// with, and its session lasts for newMemberMS, even while it waits.
	fresh    bool
	owesSync bool // in this generation

	join *Join // waits for the next generation
	// formed: the generation in flight answers join.
	formed bool
	sync   *Sync // waits for the assignment

	session deadline
}

// newMemberMS is how long a new member may wait to join (KIP-389): nobody
// knows whether its client still does.
const newMemberMS = 5 * 60 * 1000

// waits says that a request of the member waits, which keeps its session.
func (m *member) waits() bool { return m.join != nil || m.sync != nil }

func (m *member) metadata(protocol string) []byte {
	for i := range m.protocols {
		if m.protocols[i].Name == protocol {
			return m.protocols[i].Metadata
		}
	}
	return nil
}

// matches says that the member offers the same as before. Of one that was
// loaded only what it offered of the protocol chosen is known.
func (m *member) matches(offered []Protocol) bool {
	if m.folded {
		known := m.protocols[0]
		return slices.ContainsFunc(offered, known.equal)
	}
	return slices.EqualFunc(m.protocols, offered, Protocol.equal)
}

func (p Protocol) equal(q Protocol) bool {
	return p.Name == q.Name && bytes.Equal(p.Metadata, q.Metadata)
}

// distinct is protocols without those whose names came before.
func distinct(offered []Protocol) []Protocol {
	seen := make(map[string]bool, len(offered))
	return slices.DeleteFunc(offered, func(p Protocol) bool {
		again := seen[p.Name]
		seen[p.Name] = true
		return again
	})
}

// newMemberID is one as Kafka makes them: after the instance, or the client.
func (m *Machine) newMemberID(r *Join) string {
	prefix := r.ClientID
	if r.Instance != nil {
		prefix = *r.Instance
	}
	// A random UUID, of version 4.
	a, b := m.o.Rand(), m.o.Rand()
	return fmt.Sprintf("%s-%08x-%04x-4%03x-%04x-%012x",
		prefix, a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&0xffff_ffff_ffff)
}

// pendingMember has been told its id, and is to join with it (KIP-394).
type pendingMember struct {
	over  deadline
	place *list.Element // among all of the shard, oldest first
}

// maxPending bounds the ids of a shard's groups that were handed out and for
// which nobody came yet: each may be in a group that is there for it alone, and
// takes about 1.3 KB then. A client comes back within milliseconds.
const maxPending = 2000
