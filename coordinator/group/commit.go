package group

import (
	"fmt"

	"github.com/siltstone-io/siltstone/internal/planted"
)

func (m *Machine) commit(g *classic, r *Commit) {
	if err := m.checkCommit(g, r); err != nil {
		m.answer(r, err)
		return
	}
	g = m.group(r.Group)
	if mem := g.members[r.Member]; mem != nil {
		g.touch(mem)
	}
	waits, limit := false, m.o.Settings().MaxMetadataBytes
	for i := range r.Parts {
		p := &r.Parts[i]
		p.TimeMS = m.wallMS()
		switch {
		case !m.o.Exists(p.TopicPartition):
			p.Err = ErrUnknownPartition
		case len(p.Metadata) > limit, p.SizeBytes() > g.infoBytes():
			p.Err = ErrMetadataTooLarge
		case p.Offset < 0:
			p.Err = fmt.Errorf("%w: offset %d", ErrInvalidRequest, p.Offset)
		default:
			g.change().commit(p.Committed)
			waits = true
		}
	}
	if !waits {
		m.answer(r, nil)
		return
	}
	g.next.answers = append(g.next.answers, r)
}

// checkCommit says why offsets may not be committed.
func (m *Machine) checkCommit(g *classic, r *Commit) error {
	outside := r.Generation < 0
	switch {
	case g == nil && !outside:
		return fmt.Errorf("%w: %w", ErrIllegalGeneration, ErrNotFound)
	case g == nil || outside && g.phase == Empty:
		return nil // by an admin, or a consumer that is in no group
	case outside && r.Member == "" && r.Instance == nil:
		return ErrUnknownMember
	case m.o.Bug.Is(planted.OldGenerationCommits) && !outside && r.Generation < g.generation:
		return nil
	}
	if err := g.check(r.Member, r.Instance); err != nil {
		return err
	}
	switch {
	case r.Generation != g.generation:
		return ErrIllegalGeneration
	case g.phase == CompletingRebalance, g.forming != nil:
		// Nor once the next generation is decided: its members are to find
		// whatever this one has committed.
		return ErrRebalanceInProgress
	}
	return nil
}
