package group

import "fmt"

// check says why an update of a group, nil while there is none, breaks the
// rules; empty if it keeps them.
func (u *GroupUpdate) check(g *Group) string {
	if u.Set != nil {
		if why := u.Set.check(); why != "" {
			return why
		}
		if g != nil && !u.Delete && u.Set.Generation < g.Generation {
			return fmt.Sprintf("generation %d after %d", u.Set.Generation, g.Generation)
		}
	}
	named := make(map[TopicPartition]bool, len(u.Forget)+len(u.Commit))
	for _, tp := range u.Forget {
		if named[tp] {
			return fmt.Sprintf("partition %d of topic number %d is named twice", tp.Partition, tp.Topic)
		}
		named[tp] = true
	}
	for i := range u.Commit {
		tp := u.Commit[i].TopicPartition
		if named[tp] {
			return fmt.Sprintf("partition %d of topic number %d is named twice", tp.Partition, tp.Topic)
		}
		named[tp] = true
	}
	return ""
}

// check says why an Info contradicts itself; empty if it does not.
func (i *Info) check() string {
	ids, instances := make(map[string]bool, len(i.Members)), map[string]bool{}
	for _, m := range i.Members {
		if m.ID == "" || ids[m.ID] {
			return fmt.Sprintf("member %q without an id, or named twice", m.ID)
		}
		ids[m.ID] = true
		if m.Instance == nil {
			continue
		}
		if instances[*m.Instance] {
			return fmt.Sprintf("instance %q is of two members", *m.Instance)
		}
		instances[*m.Instance] = true
	}
	switch {
	case len(i.Members) > 0 && i.Leader == "":
		return "members without a leader"
	case len(i.Members) == 0 && (i.Protocol != "" || i.Assigned):
		return "a protocol or assignments without members"
	}
	return ""
}
