package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/tiered/segment"
)

// Unreadable is offsets whose records are lost, unless what holds them is mended.
type Unreadable struct {
	Topic     string           `json:"topic"` // its id where it has no name
	Partition int32            `json:"partition"`
	First     siltstone.Offset `json:"first"`
	Last      siltstone.Offset `json:"last"`
}

func (u Unreadable) String() string {
	return fmt.Sprintf("offsets %d to %d of topic %s, partition %d", u.First, u.Last, u.Topic, u.Partition)
}

// lose notes that all that objects hold of some ranges cannot be read.
func (c *checker) lose(refs ...ref) {
	for _, r := range refs {
		c.loseOffsets(r.of.TP, r.Base, r.End())
	}
}

func (c *checker) loseOffsets(tp siltstone.TopicPartition, from, end siltstone.Offset) {
	c.report.Unreadable = append(c.report.Unreadable, Unreadable{Topic: c.topicName(tp.Topic), Partition: tp.Partition, First: from, Last: end - 1})
}

// topicName is what people call a topic: its id where it has no name.
func (c *checker) topicName(id siltstone.TopicID) string {
	if t, known := c.topics.TopicByID(id); known {
		return t.Name
	}
	return id.String()
}

// partitionName is what people call a partition.
func (c *checker) partitionName(tp siltstone.TopicPartition) string {
	return fmt.Sprintf("%s-%d", c.topicName(tp.Topic), tp.Partition)
}

// salvage tells what of a damaged object cannot be read: batches, if its index
// tells them apart, or else all of it.
func (c *checker) salvage(where string, object []byte, refs []ref) {
	index := indexOf(object)
	if index == nil {
		c.lose(refs...)
		return
	}
	for _, r := range refs {
		run, ok := index.Find(r.of.TP)
		if !ok || run.Offsets != r.Offsets {
			c.lose(r)
			continue
		}
		for i := range run.Rows {
			row := &run.Rows[i]
			if err := row.Check(object[row.Position:][:row.LengthBytes]); err != nil {
				at := r.Base + siltstone.Offset(row.OffsetDelta)
				c.problem(where, "%v: offsets %d to %d of partition %s", err, at, at+siltstone.Offset(row.Offsets)-1, c.partitionName(r.of.TP))
				c.loseOffsets(r.of.TP, at, at+siltstone.Offset(row.Offsets))
			}
		}
	}
}

// indexOf is a damaged object's index; nil where that is damaged too.
func indexOf(object []byte) *segment.Index {
	t, err := segment.ParseTrailer(object)
	if err != nil || t.ObjectBytes != int64(len(object)) {
		return nil
	}
	index, _ := t.CutIndex(object)
	x, err := segment.ParseIndex(index, t)
	if err != nil {
		return nil
	}
	return x
}

// sumUnreadable sorts what cannot be read, and joins what is next to each other.
func sumUnreadable(all []Unreadable) []Unreadable {
	slices.SortFunc(all, func(a, b Unreadable) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.First, b.First))
	})
	sum := []Unreadable{}
	for _, u := range all {
		if n := len(sum); n > 0 && sum[n-1].Topic == u.Topic && sum[n-1].Partition == u.Partition && sum[n-1].Last+1 >= u.First {
			sum[n-1].Last = max(sum[n-1].Last, u.Last)
			continue
		}
		sum = append(sum, u)
	}
	return sum
}
