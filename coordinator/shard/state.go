package shard

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/internal/planted"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// State is the fold of a log shard's ledger. It implements ledger.Fold[Change].
type State struct {
	Bug planted.Bug // tests only

	epoch  siltstone.Epoch
	leader siltstone.Incarnation
	isr    []siltstone.Incarnation

	topics     map[siltstone.TopicID]*openTopic
	numbers    map[uint32]siltstone.TopicID
	partitions map[partitionKey]*Partition
	objects    *objectTable
	dropped    map[segment.ObjectID]coordinator.Seq // and the entry that gave it up
}

// openTopic is a topic with open partitions.
type openTopic struct {
	number uint32
	open   int
}

// partitionKey is how entries name a partition.
type partitionKey struct {
	number    uint32
	partition int32
}

// New is the fold of no entries: epoch 0, led by nobody, not sealed.
func New() *State {
	return &State{
		topics:     map[siltstone.TopicID]*openTopic{},
		numbers:    map[uint32]siltstone.TopicID{},
		partitions: map[partitionKey]*Partition{},
		objects:    &objectTable{numbers: map[segment.ObjectID]uint32{}},
		dropped:    map[segment.ObjectID]coordinator.Seq{},
	}
}

// Epoch is that of the last Lead; 0 before the first.
func (s *State) Epoch() siltstone.Epoch { return s.epoch }

// Leader in office; the zero Incarnation while there is none.
func (s *State) Leader() siltstone.Incarnation { return s.leader }

// ISR as the last Lead has it, ascending. Not to be changed.
func (s *State) ISR() []siltstone.Incarnation { return s.isr }

// Sealed says that a Lead has left the shard to nobody, and anybody may append.
func (s *State) Sealed() bool { return s.epoch > 0 && s.leader == 0 }

// Partition finds an open partition. What it returns goes on changing.
func (s *State) Partition(tp siltstone.TopicPartition) (*Partition, bool) {
	t, ok := s.topics[tp.Topic]
	if !ok {
		return nil, false
	}
	p, ok := s.partitions[partitionKey{t.number, tp.Partition}]
	return p, ok
}

// Len is how many partitions are open.
func (s *State) Len() int { return len(s.partitions) }

// Partitions yields the open partitions, in order of TopicPartition.Compare.
func (s *State) Partitions() iter.Seq[*Partition] {
	return func(yield func(*Partition) bool) {
		for _, p := range slices.SortedFunc(maps.Values(s.partitions), comparePartitions) {
			if !yield(p) {
				return
			}
		}
	}
}

func comparePartitions(a, b *Partition) int { return a.TP.Compare(b.TP) }

// Live says that a range refers to the object.
func (s *State) Live(id segment.ObjectID) bool { return s.objects.live(id) }

// Dropped says which entry gave the object up; false if none did.
func (s *State) Dropped(id segment.ObjectID) (coordinator.Seq, bool) {
	seq, ok := s.dropped[id]
	return seq, ok
}

// droppedObjects is what has been given up, in order.
func (s *State) droppedObjects() []segment.ObjectID {
	return slices.SortedFunc(maps.Keys(s.dropped), segment.ObjectID.Compare)
}

// open adds a partition.
func (s *State) open(tp siltstone.TopicPartition, number uint32) *Partition {
	t := s.topics[tp.Topic]
	if t == nil {
		t = &openTopic{number: number}
		s.topics[tp.Topic], s.numbers[number] = t, tp.Topic
	}
	t.open++
	p := &Partition{TP: tp, Number: number, objects: s.objects}
	s.partitions[partitionKey{number, tp.Partition}] = p
	return p
}

// close removes a partition, and the topic's number with its last one.
func (s *State) close(p *Partition) {
	p.replace(0, len(p.spans), nil)
	delete(s.partitions, p.key())
	t := s.topics[p.TP.Topic]
	t.open--
	if t.open == 0 {
		delete(s.topics, p.TP.Topic)
		delete(s.numbers, p.Number)
	}
}

// free says that no other topic has the id's number, nor the id another number.
func (s *State) free(id siltstone.TopicID, number uint32) bool {
	t, known := s.topics[id]
	owner, taken := s.numbers[number]
	return (!known || t.number == number) && (!taken || owner == id)
}

func sortedISR(isr []siltstone.Incarnation) []siltstone.Incarnation {
	return slices.SortedFunc(slices.Values(isr), cmp.Compare[siltstone.Incarnation])
}
