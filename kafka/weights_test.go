package kafka

import (
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// lists visits every list that a message can have, however deep, with a
// message in which that list alone has n elements, as small as can be, and
// those around it have one. Where the version has tags, each has an unknown
// one, which is what costs most.
func lists(newMessage func() kmsg.Request, n int, visit func(path string, q kmsg.Request)) {
	var walk func(path []int, name string)
	walk = func(path []int, name string) {
		// Build the message down to the struct at path.
		q := newMessage()
		v := reflect.ValueOf(q).Elem()
		for _, i := range path {
			v = v.Field(i)
			if v.Kind() == reflect.Slice {
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
				v = v.Index(0)
			}
		}
		if v.Kind() != reflect.Struct {
			return
		}
		for i := range v.NumField() {
			field := v.Type().Field(i)
			switch {
			case field.Name == "UnknownTags":
			case field.Type.Kind() == reflect.Struct:
				walk(append(slices.Clone(path), i), name+"."+field.Name)
			case field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() != reflect.Uint8:
				many := reflect.MakeSlice(field.Type, n, n)
				for j := range n {
					tag(many.Index(j))
				}
				v.Field(i).Set(many)
				visit(name+"."+field.Name, q)
				v.Field(i).Set(reflect.Zero(field.Type))
				walk(append(slices.Clone(path), i), name+"."+field.Name)
			}
		}
	}
	walk(nil, "")
	// Tags and nothing else.
	q := newMessage()
	tags := reflect.ValueOf(q).Elem().FieldByName("UnknownTags").Addr().Interface().(*kmsg.Tags)
	for i := range n {
		tags.Set(uint32(100+i), nil)
	}
	visit("tags", q)
}

func tag(v reflect.Value) {
	if v.Kind() != reflect.Struct {
		return
	}
	if f := v.FieldByName("UnknownTags"); f.IsValid() {
		f.Addr().Interface().(*kmsg.Tags).Set(100, nil)
	}
}

// TestWeights: no request, decoded, served and answered, costs more memory
// than its API's weight says, in lengths of its frame.
func TestWeights(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates too")
	}
	const n = 3000
	f := start(t)
	f.create("t", 1)
	for _, a := range f.server.apis {
		if a == nil || a.key == kmsg.Produce { // see TestDecodeProduceCounts
			continue
		}
		worst, where := 0.0, ""
		for version := a.min; version <= a.max; version++ {
			lists(func() kmsg.Request {
				q := a.key.Request()
				q.SetVersion(version)
				return q
			}, n, func(path string, q kmsg.Request) {
				body := q.AppendTo(nil)
				if len(body) < n { // has no such list
					return
				}
				out, _ := newOutbox(t)
				r := &request{server: f.server, api: a, version: version, body: body, size: len(body), frame: newBuffer(len(body)), arrived: time.Now()}
				r.held = int64(r.size) * a.weight
				if !f.server.memory.TryAcquire(r.held) {
					t.Fatal("there is no memory")
				}
				defer r.release()
				c := newConn(t.Context(), f.server, nil, 1)
				if cost := allocated(func() { serve(t, c, r, out) }) / float64(len(body)); cost > worst {
					worst, where = cost, path
				}
			})
		}
		t.Logf("%-26s %6.1f %s (%d)", a.name, worst, where, a.weight)
		if worst > float64(a.weight) {
			t.Errorf("%s costs %.0f times its length, by %s; its weight is %d", a.name, worst, where, a.weight)
		}
	}
}

func serve(t *testing.T, c *conn, r *request, out *outbox) {
	a, err := r.api.start(c, r)
	if err == nil {
		err = a.respond(t.Context(), out)
	}
	if err != nil {
		t.Error(err)
	}
}

// allocated is how many bytes f allocates, freed or not.
func allocated(f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc)
}
