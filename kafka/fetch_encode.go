package kafka

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/siltstone-io/siltstone"
)

// fetched is an answer to Fetch.
type fetched struct {
	code      int16 // of the session
	sessionID int32
	isolation siltstone.Isolation
	parts     []*fetchedPart // neighbours of one topic stand together in the answer
	nodes     []*Node        // who leads what this node does not
}

// point says where to go with a partition that is not led here (KIP-951).
func (f *fetched) point(s *Server, info *ClusterInfo, p *fetchedPart) {
	if p.code != kerr.NotLeaderForPartition.Code && p.code != kerr.FencedLeaderEpoch.Code {
		return
	}
	id, epoch, err := s.leader(info, p.tp)
	if err != nil {
		return
	}
	p.leader, p.leaderEpoch = id, epoch
	if n, ok := info.node(id); ok && !slices.Contains(f.nodes, n) {
		f.nodes = append(f.nodes, n)
	}
}

// fetch writes an answer to Fetch. It is kmsg's FetchResponse byte for byte,
// but that the record batches are spliced in.
func (o *outbox) fetch(r *request, f *fetched) {
	o.begin(r)
	e := fetchEncoder{outbox: o, version: r.version, compact: r.flexible()}
	o.buf = kbin.AppendInt32(o.buf, 0) // throttle
	if r.version >= 7 {
		o.buf = kbin.AppendInt16(o.buf, f.code)
		o.buf = kbin.AppendInt32(o.buf, f.sessionID)
	}
	topics := 0
	for i := range f.parts {
		if i == 0 || !sameTopic(f.parts[i-1], f.parts[i]) {
			topics++
		}
	}
	e.array(topics)
	for first := 0; first < len(f.parts); {
		end := first + 1
		for end < len(f.parts) && sameTopic(f.parts[first], f.parts[end]) {
			end++
		}
		e.topic(f, f.parts[first:end])
		first = end
	}
	e.nodes(f.nodes)
	o.end(r)
}

func sameTopic(a, b *fetchedPart) bool {
	return a.want.topic == b.want.topic && a.want.topicID == b.want.topicID
}

// fetchEncoder writes the fields of both kinds of version.
type fetchEncoder struct {
	*outbox
	version int16
	compact bool
}

func (e *fetchEncoder) topic(f *fetched, parts []*fetchedPart) {
	if e.version >= 13 {
		e.buf = kbin.AppendUuid(e.buf, parts[0].want.topicID)
	} else {
		e.str(parts[0].want.topic)
	}
	e.array(len(parts))
	for _, p := range parts {
		e.partition(f, p)
	}
	e.noTags()
}

func (e *fetchEncoder) partition(f *fetched, p *fetchedPart) {
	e.buf = kbin.AppendInt32(e.buf, p.want.partition)
	e.buf = kbin.AppendInt16(e.buf, p.code)
	e.buf = kbin.AppendInt64(e.buf, int64(p.highWatermark))
	e.buf = kbin.AppendInt64(e.buf, int64(p.lastStable))
	if e.version >= 5 {
		e.buf = kbin.AppendInt64(e.buf, int64(p.logStart))
	}
	// Aborted transactions: null unless read_committed, and none yet.
	if f.isolation == siltstone.ReadCommitted {
		e.array(0)
	} else {
		e.array(-1)
	}
	if e.version >= 11 {
		e.buf = kbin.AppendInt32(e.buf, -1) // no preferred read replica
	}
	if e.compact {
		e.buf = kbin.AppendUvarint(e.buf, uint32(p.recordBytes)+1)
	} else {
		e.buf = kbin.AppendInt32(e.buf, int32(p.recordBytes))
	}
	e.splice(p.records, p.recordBytes)
	e.partitionTags(p)
}

func (e *fetchEncoder) partitionTags(p *fetchedPart) {
	if !e.compact {
		return
	}
	tags := byte(0)
	if p.divergingEpoch >= 0 {
		tags++
	}
	if p.leader >= 0 {
		tags++
	}
	e.buf = append(e.buf, tags)
	if p.divergingEpoch >= 0 { // tag 0: 13 bytes
		e.buf = append(e.buf, 0, 13)
		e.buf = kbin.AppendInt32(e.buf, int32(p.divergingEpoch))
		e.buf = kbin.AppendInt64(e.buf, int64(p.divergingEnd))
		e.buf = append(e.buf, 0)
	}
	if p.leader >= 0 { // tag 1: 9 bytes
		e.buf = append(e.buf, 1, 9)
		e.buf = kbin.AppendInt32(e.buf, p.leader)
		e.buf = kbin.AppendInt32(e.buf, int32(p.leaderEpoch))
		e.buf = append(e.buf, 0)
	}
}

// nodes writes the tags of the whole answer: tag 0, from v16 on, the nodes.
func (e *fetchEncoder) nodes(nodes []*Node) {
	if e.version < 16 || len(nodes) == 0 {
		e.noTags()
		return
	}
	tag := kbin.AppendCompactArrayLen(nil, len(nodes))
	for _, n := range nodes {
		tag = kbin.AppendInt32(tag, n.ID)
		tag = kbin.AppendCompactString(tag, n.Host)
		tag = kbin.AppendInt32(tag, n.Port)
		tag = kbin.AppendCompactNullableString(tag, n.rack())
		tag = append(tag, 0)
	}
	e.buf = append(e.buf, 1, 0)
	e.buf = kbin.AppendUvarint(e.buf, uint32(len(tag)))
	e.buf = append(e.buf, tag...)
}

// array writes a length; -1 is null.
func (e *fetchEncoder) array(n int) {
	if e.compact {
		e.buf = kbin.AppendUvarint(e.buf, uint32(n+1))
	} else {
		e.buf = kbin.AppendInt32(e.buf, int32(n))
	}
}

func (e *fetchEncoder) str(s string) {
	if e.compact {
		e.buf = kbin.AppendCompactString(e.buf, s)
	} else {
		e.buf = kbin.AppendString(e.buf, s)
	}
}

func (e *fetchEncoder) noTags() {
	if e.compact {
		e.buf = append(e.buf, 0)
	}
}
