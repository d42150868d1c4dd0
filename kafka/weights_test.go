package kafka

import (
	"reflect"
	"runtime"
	"slices"

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

// allocated is how many bytes f allocates, freed or not.
func allocated(f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc)
}
