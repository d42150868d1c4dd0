package group

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSubscribedTopics(t *testing.T) {
	for name, c := range map[string]struct {
		metadata []byte
		topics   []string
		ok       bool
	}{
		"of Kafka's clients":  {reads("a", "topic-b"), []string{"a", "topic-b"}, true},
		"of no topics":        {[]byte{0, 0, 0, 0, 0, 0}, nil, true},
		"of a later version":  {[]byte{0, 9, 0, 0, 0, 1, 0, 1, 'x', 1, 2, 3, 4}, []string{"x"}, true},
		"empty":               {nil, nil, false},
		"without topics":      {[]byte{0, 1}, nil, false},
		"cut in the count":    {[]byte{0, 1, 0, 0, 0}, nil, false},
		"cut before a name":   {[]byte{0, 1, 0, 0, 0, 1}, nil, false},
		"cut in a name":       {[]byte{0, 1, 0, 0, 0, 1, 0, 3, 'a', 'b'}, nil, false},
		"a negative version":  {[]byte{255, 255, 0, 0, 0, 0}, nil, false},
		"a negative count":    {[]byte{0, 0, 255, 255, 255, 255}, nil, false},
		"a count of billions": {[]byte{0, 0, 127, 255, 255, 255, 0, 1, 'a'}, nil, false},
		"a null name":         {[]byte{0, 0, 0, 0, 0, 1, 255, 255}, nil, false},
		"no UTF-8":            {[]byte{0, 0, 0, 0, 0, 1, 0, 1, 0xff}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			topics, ok := subscribedTopics(c.metadata)
			if ok != c.ok || ok && !slices.Equal(topics, c.topics) {
				t.Errorf("%q, %v", topics, ok)
			}
		})
	}
}

func TestSubscribedTopicsAreAllFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.String()).Draw(t, "topics")
		if got, ok := subscribedTopics(reads(want...)); !ok || !slices.Equal(got, want) {
			t.Errorf("%q became %q, %v", want, got, ok)
		}
	})
}

func FuzzSubscription(f *testing.F) {
	f.Add(reads("a", "b"))
	f.Add([]byte{0, 0, 127, 255, 255, 255, 0, 1, 'a'})
	f.Fuzz(func(t *testing.T, b []byte) {
		topics, ok := subscribedTopics(b)
		size := 6
		for _, name := range topics {
			size += 2 + len(name)
		}
		if ok && size > len(b) {
			t.Errorf("%d bytes of %d", size, len(b))
		}
	})
}
