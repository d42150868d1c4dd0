package kafka

import (
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/topic"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

// wellFormed visits a request of every API and version that is served, each
// with one of everything that it can have, and about a topic that is there.
func wellFormed(t testing.TB, s *Server, about *topic.Topic, visit func(a *api, q kmsg.Request)) {
	t.Helper()
	records := oneBatch(t, batch.LZ4, "a", "b")
	for _, a := range s.apis {
		if a == nil {
			continue
		}
		for version := a.min; version <= a.max; version++ {
			q := a.key.Request()
			populate(reflect.ValueOf(q).Elem(), about)
			switch q := q.(type) {
			case *kmsg.ProduceRequest:
				q.Acks, q.TransactionID, q.Topics[0].Partitions[0].Records = -1, nil, records
			case *kmsg.FetchRequest:
				q.SessionID, q.SessionEpoch, q.MaxWaitMillis = 0, -1, 1
			}
			q.SetVersion(version)
			visit(a, q)
		}
	}
}

// populate gives every list one element, and everything the name of the topic.
func populate(v reflect.Value, about *topic.Topic) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "UnknownTags" && name != "Version" && v.Field(i).CanSet() {
				populate(v.Field(i), about)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		populate(v.Index(0), about)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		populate(v.Elem(), about)
	case reflect.Array:
		reflect.Copy(v, reflect.ValueOf(about.ID[:]))
	case reflect.String:
		v.SetString(about.Name)
	}
}
