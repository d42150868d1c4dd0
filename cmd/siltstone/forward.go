package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/agent"
)

// A forwarder is the log behind the HTTP door: what another agent leads is asked
// of that one, by Kafka's protocol, as any client does. (The Kafka door tells its
// clients who leads instead.)
type forwarder struct {
	*agent.Agent
	seed string // an agent's address for Kafka clients, its own

	mu     sync.Mutex
	client *kgo.Client // nil: nothing was forwarded yet
}

// forwardTime is what another agent may take to answer beyond the time that it
// is given to.
const forwardTime = 2 * time.Second

func (f *forwarder) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.client != nil {
		f.client.Close()
	}
}

// ask sends a request to another agent.
func (f *forwarder) ask(ctx context.Context, node int32, until time.Time, q kmsg.Request) (kmsg.Response, error) {
	f.mu.Lock()
	if f.client == nil {
		client, err := kgo.NewClient(kgo.SeedBrokers(f.seed), kgo.ClientID("siltstone-http"), kgo.MetadataMinAge(50*time.Millisecond))
		if err != nil {
			f.mu.Unlock()
			return nil, err
		}
		f.client = client
	}
	client := f.client
	f.mu.Unlock()
	ctx, cancel := context.WithDeadline(ctx, until.Add(forwardTime))
	defer cancel()
	return client.Broker(int(node)).Request(ctx, q)
}

// elsewhere says which other agent leads a partition, if one does.
func (f *forwarder) elsewhere(tp siltstone.TopicPartition) (int32, bool) {
	node, _, ok := f.Leader(tp)
	return node, ok && node != f.Status().Self
}

// Append implements gateway.Log.
func (f *forwarder) Append(ctx context.Context, r *siltstone.AppendRequest) error {
	away := map[int32][]int{} // parts, by node
	var here []int
	for i := range r.Parts {
		if node, ok := f.elsewhere(r.Parts[i].Partition); ok {
			away[node] = append(away[node], i)
		} else {
			here = append(here, i)
		}
	}
	if len(away) == 0 {
		return f.Agent.Append(ctx, r)
	}
	var own *siltstone.AppendRequest
	if len(here) > 0 {
		own = &siltstone.AppendRequest{Acks: r.Acks, Deadline: r.Deadline, Done: make(chan struct{})}
		for _, i := range here {
			own.Parts = append(own.Parts, r.Parts[i])
		}
		if err := f.Agent.Append(ctx, own); err != nil {
			return err // nothing is sent yet
		}
	}
	go func() {
		defer close(r.Done)
		var wg sync.WaitGroup
		for node, parts := range away {
			wg.Go(func() { f.produce(ctx, node, r, parts) })
		}
		if own != nil {
			<-own.Done
			for n, i := range here {
				r.Parts[i] = own.Parts[n]
			}
		}
		wg.Wait()
	}()
	return nil
}

// produce appends some parts of a request at the agent that leads them.
func (f *forwarder) produce(ctx context.Context, node int32, r *siltstone.AppendRequest, parts []int) {
	q := kmsg.NewPtrProduceRequest()
	q.Acks, q.TimeoutMillis = r.Acks, millisUntil(r.Deadline)
	at := map[siltstone.TopicPartition]int{}
	for _, i := range parts {
		p := &r.Parts[i]
		p.Err, p.Base, p.LogStart, p.RepeatedMS = siltstone.ErrTimedOut, -1, -1, -1 // it may be written, until we know better
		at[p.Partition] = i
		t := kmsg.NewProduceRequestTopic()
		t.Topic, t.TopicID = f.nameOf(p.Partition.Topic), p.Partition.Topic
		tp := kmsg.NewProduceRequestTopicPartition()
		tp.Partition, tp.Records = p.Partition.Partition, p.Batches
		t.Partitions = append(t.Partitions, tp)
		q.Topics = append(q.Topics, t)
	}
	answer, err := f.ask(context.WithoutCancel(ctx), node, r.Deadline, q)
	if err != nil {
		for _, i := range parts {
			r.Parts[i].Err = unanswered(err, siltstone.ErrTimedOut)
		}
		return
	}
	resp, _ := answer.(*kmsg.ProduceResponse)
	for _, t := range resp.Topics {
		for _, tp := range t.Partitions {
			i, ok := at[siltstone.TopicPartition{Topic: f.idOf(t.TopicID, t.Topic), Partition: tp.Partition}]
			if !ok {
				continue
			}
			p := &r.Parts[i]
			if p.Err = answered(tp.ErrorCode, tp.ErrorMessage); p.Err == nil {
				p.Base, p.LogStart = siltstone.Offset(tp.BaseOffset), siltstone.Offset(tp.LogStartOffset)
			}
		}
	}
}

// Fetch implements gateway.Log, whose requests are of one partition.
func (f *forwarder) Fetch(ctx context.Context, r *siltstone.FetchRequest) (*siltstone.FetchResult, error) {
	if len(r.Parts) != 1 {
		return f.Agent.Fetch(ctx, r)
	}
	p := &r.Parts[0]
	node, away := f.elsewhere(p.Partition)
	if !away {
		return f.Agent.Fetch(ctx, r)
	}
	q := kmsg.NewPtrFetchRequest()
	q.MaxWaitMillis, q.MinBytes, q.MaxBytes = millisUntil(r.Deadline), int32(r.MinBytes), int32(r.MaxBytes)
	q.IsolationLevel, q.SessionEpoch = int8(r.Isolation), -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = f.nameOf(p.Partition.Topic), p.Partition.Topic
	tp := kmsg.NewFetchRequestTopicPartition()
	tp.Partition, tp.FetchOffset, tp.PartitionMaxBytes = p.Partition.Partition, int64(p.Offset), int32(p.MaxBytes)
	tp.CurrentLeaderEpoch, tp.LastFetchedEpoch = int32(p.Epoch), int32(p.LastEpoch)
	t.Partitions = append(t.Partitions, tp)
	q.Topics = append(q.Topics, t)
	answer, err := f.ask(ctx, node, r.Deadline, q)
	if err != nil {
		return nil, unanswered(err, siltstone.ErrUnavailable)
	}
	resp, _ := answer.(*kmsg.FetchResponse)
	if err := answered(resp.ErrorCode, nil); err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, fmt.Errorf("%w: node %d answers for no partition", siltstone.ErrUnavailable, node)
	}
	of := resp.Topics[0].Partitions[0]
	got := siltstone.FetchedPart{
		Err: answered(of.ErrorCode, nil), DivergingEpoch: -1, DivergingEnd: -1,
		HighWatermark: siltstone.Offset(of.HighWatermark), LastStable: siltstone.Offset(of.LastStableOffset), Start: siltstone.Offset(of.LogStartOffset),
	}
	if len(of.RecordBatches) > 0 {
		got.Records = [][]byte{of.RecordBatches}
	}
	return &siltstone.FetchResult{Parts: []siltstone.FetchedPart{got}}, nil
}

// OffsetForTime implements gateway.Log.
func (f *forwarder) OffsetForTime(ctx context.Context, tp siltstone.TopicPartition, ms int64, epoch siltstone.Epoch, isolation siltstone.Isolation) (siltstone.TimedOffset, error) {
	none := siltstone.TimedOffset{Offset: -1, Timestamp: -1, Epoch: -1}
	node, away := f.elsewhere(tp)
	if !away {
		return f.Agent.OffsetForTime(ctx, tp, ms, epoch, isolation)
	}
	q := kmsg.NewPtrListOffsetsRequest()
	q.ReplicaID, q.IsolationLevel = -1, int8(isolation)
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = f.nameOf(tp.Topic)
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp, p.CurrentLeaderEpoch = tp.Partition, ms, int32(epoch)
	t.Partitions = append(t.Partitions, p)
	q.Topics = append(q.Topics, t)
	answer, err := f.ask(ctx, node, time.Now().Add(lookupTime), q)
	if err != nil {
		return none, unanswered(err, siltstone.ErrUnavailable)
	}
	resp, _ := answer.(*kmsg.ListOffsetsResponse)
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return none, fmt.Errorf("%w: node %d answers for no partition", siltstone.ErrUnavailable, node)
	}
	got := resp.Topics[0].Partitions[0]
	if err := answered(got.ErrorCode, nil); err != nil {
		return none, err
	}
	return siltstone.TimedOffset{Offset: siltstone.Offset(got.Offset), Timestamp: got.Timestamp, Epoch: siltstone.Epoch(got.LeaderEpoch)}, nil
}

// lookupTime is what finding a record by its time may take at another agent.
const lookupTime = 10 * time.Second

func (f *forwarder) nameOf(id siltstone.TopicID) string {
	if t, ok := f.Topics().TopicByID(id); ok {
		return t.Name
	}
	return ""
}

// idOf is a topic as a response names it: by its id, or in older versions its name.
func (f *forwarder) idOf(id [16]byte, name string) siltstone.TopicID {
	if t, ok := f.Topics().Topic(name); ok && id == [16]byte{} {
		return t.ID
	}
	return id
}

func millisUntil(t time.Time) int32 {
	return int32(max(time.Until(t), time.Millisecond) / time.Millisecond)
}

// unanswered is a request that another agent has not answered: perhaps done, or
// where it could not be reached at all, not.
func unanswered(err, perhaps error) error {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		perhaps = siltstone.ErrNotLeader
	}
	return fmt.Errorf("%w: asking the agent that leads: %w", perhaps, err)
}

// answered is an error of Kafka's as one of ours, nil for none.
func answered(code int16, message *string) error {
	err := kerr.ErrorForCode(code)
	if err == nil {
		return nil
	}
	ours := siltstone.ErrUnavailable
	for _, c := range []struct{ theirs, ours error }{
		{kerr.NotLeaderForPartition, siltstone.ErrNotLeader},
		{kerr.FencedLeaderEpoch, siltstone.ErrFencedEpoch},
		{kerr.UnknownLeaderEpoch, siltstone.ErrUnknownEpoch},
		{kerr.UnknownTopicOrPartition, siltstone.ErrUnknownPartition},
		{kerr.UnknownTopicID, siltstone.ErrUnknownPartition},
		{kerr.OffsetOutOfRange, siltstone.ErrOffsetOutOfRange},
		{kerr.RequestTimedOut, siltstone.ErrTimedOut},
		{kerr.MessageTooLarge, siltstone.ErrTooLarge},
		{kerr.CorruptMessage, siltstone.ErrCorrupt},
	} {
		if errors.Is(err, c.theirs) {
			ours = c.ours
		}
	}
	if message != nil {
		return fmt.Errorf("%w: %s", ours, *message)
	}
	return fmt.Errorf("%w: %w", ours, err)
}
