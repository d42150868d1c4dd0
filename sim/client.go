package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// What a request may end with, besides an answer.
var (
	errTimeout = errors.New("sim: no answer in time")
	errClosed  = errors.New("sim: connection closed")
)

// requestTimeout is how long most clients wait for an answer before they give
// up the connection.
const requestTimeout = 8 * time.Second

// A line is one connection of a client to a host, made when there is something
// to send and again after it broke. Requests are answered in order.
type line struct {
	world   *world
	client  string
	host    string
	timeout time.Duration
	conn    *conn
	up      bool
	round   uint64 // of connections; tells an old one's timers from the present one's
	corr    int32
	outbox  [][]byte // to be sent once the connection is up
	waiting []*request
	in      []byte
}

// A request waits for its answer.
type request struct {
	msg  kmsg.Request
	corr int32
	done func(kmsg.Response, error)
}

var formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID("sim"))

// ask sends a request; done is called once, in the driver, later. A request
// that is not answered ends at once.
func (l *line) ask(msg kmsg.Request, answered bool, done func(kmsg.Response, error)) {
	l.askWithin(l.timeout, msg, answered, done)
}

// askWithin is ask of a client that waits for so long.
func (l *line) askWithin(timeout time.Duration, msg kmsg.Request, answered bool, done func(kmsg.Response, error)) {
	l.corr++
	frame := formatter.AppendRequest(nil, msg, l.corr)
	if l.conn == nil {
		l.round++
		l.conn = l.world.dial(l.host, l.client, l)
	}
	if l.up {
		l.conn.send(frame)
	} else {
		l.outbox = append(l.outbox, frame)
	}
	if !answered {
		l.world.after(0, func() { done(nil, nil) })
		return
	}
	r := &request{msg: msg, corr: l.corr, done: done}
	l.waiting = append(l.waiting, r)
	round := l.round
	l.world.after(timeout, func() {
		if l.round == round && len(l.waiting) > 0 && l.waiting[0].corr <= r.corr {
			l.drop(errTimeout)
		}
	})
}

// drop gives up the connection and all that waits on it.
func (l *line) drop(err error) {
	l.round++
	if l.conn != nil {
		l.conn.hangUp()
	}
	l.conn, l.up, l.in, l.outbox = nil, false, nil, nil
	waiting := l.waiting
	l.waiting = nil
	for _, r := range waiting {
		l.world.after(0, func() { r.done(nil, err) })
	}
}

func (l *line) opened(c *conn) {
	if c != l.conn {
		return
	}
	l.up = true
	for _, frame := range l.outbox {
		c.send(frame)
	}
	l.outbox = nil
}

func (l *line) closed(c *conn, err error) {
	if c == l.conn {
		l.drop(fmt.Errorf("%w: %w", errClosed, err))
	}
}

func (l *line) received(c *conn, b []byte) {
	if c != l.conn {
		return
	}
	l.in = append(l.in, b...)
	for len(l.in) >= 4 && l.conn == c {
		size := int(int32(binary.BigEndian.Uint32(l.in)))
		if len(l.in) < 4+size {
			return
		}
		frame := l.in[4 : 4+size]
		l.in = l.in[4+size:]
		l.answer(frame)
	}
}

// answer hands a response to whoever waits for it.
func (l *line) answer(frame []byte) {
	if len(l.waiting) == 0 || len(frame) < 4 || int32(binary.BigEndian.Uint32(frame)) != l.waiting[0].corr {
		l.world.failf("%s: an answer that nobody waits for, of %d bytes", l.client, len(frame))
		l.drop(errClosed)
		return
	}
	r := l.waiting[0]
	l.waiting = l.waiting[1:]
	body := frame[4:]
	resp := r.msg.ResponseKind()
	if resp.IsFlexible() && resp.Key() != 18 { // ApiVersions alone has the old header
		body = body[1:] // no tags
	}
	if err := resp.ReadFrom(body); err != nil {
		l.world.failf("%s: response %s v%d: %v", l.client, kmsg.NameForKey(resp.Key()), resp.GetVersion(), err)
		l.drop(errClosed)
		return
	}
	r.done(resp, nil)
}

// refused notes an error code that an answer has; it says whether there is one.
func (w *world) refused(client string, code int16, format string, args ...any) bool {
	if code == 0 {
		return false
	}
	w.tracef("%s: %s: error %d", client, fmt.Sprintf(format, args...), code)
	if code < 0 {
		w.failf("9: %s: %s: the server does not know what is wrong", client, fmt.Sprintf(format, args...))
	}
	return true
}

// A guide is what a client knows of the cluster: the hosts that it may begin
// with, and by metadata the leaders of partitions.
type guide struct {
	world   *world
	client  string
	hosts   []string
	turn    int           // of the host that is asked first; moves on when one is of no use
	timeout time.Duration // of its lines
	lines   map[string]*line
	leaders map[partition]string
	ids     map[string][16]byte
	names   map[[16]byte]string
	asking  bool
	waiting []func()
}

func newGuide(w *world, client string, hosts []string) *guide {
	return &guide{
		world: w, client: client, hosts: hosts, timeout: requestTimeout, lines: map[string]*line{},
		leaders: map[partition]string{}, ids: map[string][16]byte{}, names: map[[16]byte]string{},
	}
}

// first is the host to ask what any may answer.
func (g *guide) first() string { return g.hosts[g.turn%len(g.hosts)] }

// to is the client's connection to a host, one of so many.
func (g *guide) to(host string, number int) *line {
	name := fmt.Sprintf("%s-%d", g.client, number)
	key := host + " " + name
	if g.lines[key] == nil {
		g.lines[key] = &line{world: g.world, client: name, host: host, timeout: g.timeout}
	}
	return g.lines[key]
}

// hangUp closes all connections.
func (g *guide) hangUp() {
	for _, key := range slices.Sorted(maps.Keys(g.lines)) {
		g.lines[key].drop(errClosed)
	}
}

// refresh asks for metadata, of all topics, until some host answers.
func (g *guide) refresh(then func()) {
	g.waiting = append(g.waiting, then)
	if !g.asking {
		g.asking = true
		g.askMetadata()
	}
}

func (g *guide) askMetadata() {
	w := g.world
	d := w.dice("metadata " + g.client)
	msg := kmsg.NewPtrMetadataRequest()
	msg.Version = int16(d.between(10, 12))
	msg.Topics = nil
	g.to(g.hosts[d.below(len(g.hosts))], 0).ask(msg, true, func(resp kmsg.Response, err error) {
		if err != nil || !g.learn(resp.(*kmsg.MetadataResponse)) {
			w.after(d.duration(50*time.Millisecond, 300*time.Millisecond), g.askMetadata)
			return
		}
		g.asking = false
		waiting := g.waiting
		g.waiting = nil
		for _, then := range waiting {
			then()
		}
	})
}

// learn says whether the answer was good for anything.
func (g *guide) learn(resp *kmsg.MetadataResponse) bool {
	hosts := map[int32]string{}
	for _, b := range resp.Brokers {
		hosts[b.NodeID] = b.Host
	}
	clear(g.leaders)
	for _, t := range resp.Topics {
		if t.ErrorCode != 0 || t.Topic == nil {
			continue
		}
		g.ids[*t.Topic], g.names[t.TopicID] = t.TopicID, *t.Topic
		for _, p := range t.Partitions {
			if g.world.refused(g.client, p.ErrorCode, "metadata of %s/%d", *t.Topic, p.Partition) {
				continue
			}
			if hosts[p.Leader] == "" {
				g.world.failf("metadata: leader %d of %s/%d is no broker", p.Leader, *t.Topic, p.Partition)
				continue
			}
			g.leaders[partition{*t.Topic, p.Partition}] = hosts[p.Leader]
		}
	}
	return len(resp.Brokers) > 0
}
