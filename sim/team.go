package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A team is what the members of one group have in common.
type team struct {
	group       string
	parts       []partition // of all topics that they subscribe to
	protocols   []string    // all members have all, in some order: after a restart only the chosen one is known
	cooperative bool        // partitions are given up before others get them (KIP-429)
	// fragile: somebody deletes the group, its offsets, its members.
	fragile bool
	// follow lets another process follow a member, as what it was.
	follow func(*member)

	members []*member // all that ever were
	made    int       // marks and commit ids
}

func (t *team) topics() []string {
	var names []string
	for _, p := range t.parts {
		if !slices.Contains(names, p.topic) {
			names = append(names, p.topic)
		}
	}
	return names
}

// commitID names a commit, mark an allotment.
func (t *team) commitID() string { return t.number("c") }
func (t *team) mark() string     { return t.number("a") }

func (t *team) number(of string) string {
	t.made++
	return fmt.Sprintf("%s-%s%d", t.group, of, t.made)
}

// A candidate is a member as its leader sees it.
type candidate struct {
	id    string
	owned []partition
}

// allot shares out the team's partitions, evenly. In a cooperative team a
// partition that a member owns goes to no other: if it is to move, nobody gets
// it this time.
func (t *team) allot(members []candidate) map[string][]partition {
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b candidate) int { return cmp.Compare(a.id, b.id) })
	shares := map[string][]partition{}
	if len(members) == 0 {
		return shares
	}
	taken := map[partition]bool{}
	room := t.quotas(members)
	for i, m := range members {
		shares[m.id] = nil
		for _, p := range m.owned {
			if t.cooperative && !taken[p] && slices.Contains(t.parts, p) {
				taken[p] = true
				if room[i] > 0 {
					room[i]--
					shares[m.id] = append(shares[m.id], p)
				}
			}
		}
	}
	i := 0
	for _, p := range t.parts {
		if taken[p] {
			continue
		}
		for room[i] == 0 {
			i = (i + 1) % len(members)
		}
		room[i]--
		shares[members[i].id] = append(shares[members[i].id], p)
	}
	return shares
}

// quotas is how many partitions each member gets: one more where they do not
// come out even, for those first that have the most.
func (t *team) quotas(members []candidate) []int {
	each, more := len(t.parts)/len(members), len(t.parts)%len(members)
	quotas, order := make([]int, len(members)), make([]int, len(members))
	for i := range order {
		order[i] = i
	}
	if t.cooperative {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(members[b].owned), len(members[a].owned)) })
	}
	for n, i := range order {
		quotas[i] = each
		if n < more {
			quotas[i]++
		}
	}
	return quotas
}

// subscription is what a member says of itself to its leader.
func (t *team) subscription(owned []partition, generation int32) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = t.topics()
	if t.cooperative {
		m.Version, m.Generation = 2, generation
		for _, p := range owned {
			i := slices.IndexFunc(m.OwnedPartitions, func(o kmsg.ConsumerMemberMetadataOwnedPartition) bool { return o.Topic == p.topic })
			if i < 0 {
				i = len(m.OwnedPartitions)
				m.OwnedPartitions = append(m.OwnedPartitions, kmsg.ConsumerMemberMetadataOwnedPartition{Topic: p.topic})
			}
			m.OwnedPartitions[i].Partitions = append(m.OwnedPartitions[i].Partitions, p.number)
		}
	}
	return m.AppendTo(nil)
}

func ownedIn(subscription []byte) ([]partition, error) {
	var m kmsg.ConsumerMemberMetadata
	if err := m.ReadFrom(subscription); err != nil {
		return nil, err
	}
	var owned []partition
	for _, t := range m.OwnedPartitions {
		for _, n := range t.Partitions {
			owned = append(owned, partition{t.Topic, n})
		}
	}
	return owned, nil
}

// assignment is a member's share as its leader sends it, with the allotment's mark.
func assignment(share []partition, mark string) []byte {
	a := kmsg.NewConsumerMemberAssignment()
	a.UserData = []byte(mark)
	for _, p := range share {
		if n := len(a.Topics); n == 0 || a.Topics[n-1].Topic != p.topic {
			a.Topics = append(a.Topics, kmsg.ConsumerMemberAssignmentTopic{Topic: p.topic})
		}
		t := &a.Topics[len(a.Topics)-1]
		t.Partitions = append(t.Partitions, p.number)
	}
	return a.AppendTo(nil)
}

// sharesIn is an assignment's share and mark; none of nothing.
func sharesIn(b []byte) (share []partition, mark string, err error) {
	if len(b) == 0 {
		return nil, "", nil
	}
	var a kmsg.ConsumerMemberAssignment
	if err := a.ReadFrom(b); err != nil {
		return nil, "", err
	}
	for _, t := range a.Topics {
		for _, n := range t.Partitions {
			share = append(share, partition{t.Topic, n})
		}
	}
	return share, string(a.UserData), nil
}
