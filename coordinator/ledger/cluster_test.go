package ledger_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/faulty"
	"github.com/siltstone-io/siltstone/tiered/bucket"
	bucketfaulty "github.com/siltstone-io/siltstone/tiered/bucket/faulty"
)

const (
	textOne = "siltstone 1 AQAAAAAAAAAAAAAAAAAAAA\n"
	textTwo = "siltstone 1 AgAAAAAAAAAAAAAAAAAAAA\n"
)

var idOne, idTwo = siltstone.ClusterID{1}, siltstone.ClusterID{2}

// marked is a rig whose stores carry these texts, if any, and an object.
func marked(t *testing.T, inCoordinator, inBucket, object string) rig {
	t.Helper()
	r := newRig()
	if inCoordinator != "" {
		if _, err := r.store.Put(t.Context(), coordinator.ClusterKey, []byte(inCoordinator), "", nonce(1)); err != nil {
			t.Fatal(err)
		}
	}
	if inBucket != "" {
		if err := r.bucket.Put(t.Context(), coordinator.ClusterKey, bucket.Body{[]byte(inBucket)}); err != nil {
			t.Fatal(err)
		}
	}
	if object != "" {
		if err := r.bucket.Put(t.Context(), object, bucket.Body{[]byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestClusterID(t *testing.T) {
	none := siltstone.ClusterID{}
	for name, test := range map[string]struct {
		inCoordinator, inBucket, object string
		read, ensured                   siltstone.ClusterID
		readErr, ensureErr              error
		says                            string
	}{
		"new":                          {"", "", "", none, idTwo, nil, nil, ""},
		"one cluster":                  {textOne, textOne, "", idOne, idOne, nil, nil, ""},
		"one cluster, in use":          {textOne, textOne, "a/b", idOne, idOne, nil, nil, ""},
		"two clusters":                 {textOne, textTwo, "", none, none, siltstone.ErrForeign, siltstone.ErrForeign, "coordinator is of cluster AQ"},
		"interrupted":                  {"", textOne, "", none, idOne, siltstone.ErrForeign, nil, ""},
		"the coordinator was lost":     {"", textOne, "a/b", none, none, siltstone.ErrForeign, siltstone.ErrForeign, "coordinator is empty"},
		"the bucket was lost":          {textOne, "", "", none, none, siltstone.ErrForeign, siltstone.ErrForeign, "bucket of none"},
		"somebody's bucket":            {"", "", "photo.jpg", none, none, nil, siltstone.ErrForeign, `"photo.jpg"`},
		"sorted before":                {"", "", "a/b", none, none, nil, siltstone.ErrForeign, `"a/b"`},
		"something else in the object": {"", "my cluster", "", none, none, siltstone.ErrForeign, siltstone.ErrForeign, `"my cluster"`},
		"damaged register":             {textOne[:20], textOne, "", none, none, siltstone.ErrForeign, siltstone.ErrForeign, "coordinator's"},
		"the zero id":                  {"", "siltstone 1 AAAAAAAAAAAAAAAAAAAAAA\n", "", none, none, siltstone.ErrForeign, siltstone.ErrForeign, "bucket's"},
		"a newer layout":               {textOne, "siltstone 2 whatever comes", "", none, none, siltstone.ErrNewerFormat, siltstone.ErrNewerFormat, "layout 2"},
	} {
		t.Run(name, func(t *testing.T) {
			r := marked(t, test.inCoordinator, test.inBucket, test.object)
			if id, err := r.ClusterID(t.Context()); !errors.Is(err, test.readErr) || err == nil && id != test.read {
				t.Errorf("read %s, %v", id, err)
			}
			id, err := r.EnsureClusterID(t.Context(), idTwo)
			if !errors.Is(err, test.ensureErr) || id != test.ensured || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Fatalf("ensured %s, %v", id, err)
			}
			if err != nil {
				return
			}
			// And so it stays.
			if again, err := r.ClusterID(t.Context()); err != nil || again != id {
				t.Errorf("read %s, %v after that", again, err)
			}
			if again, err := r.EnsureClusterID(t.Context(), siltstone.ClusterID{3}); err != nil || again != id {
				t.Errorf("ensured %s, %v after that", again, err)
			}
		})
	}
}

// Many start at once, and are interrupted anywhere: all that come through agree.
func TestEnsureClusterIDTogether(t *testing.T) {
	for round := range 20 {
		r := newRig()
		var mu sync.Mutex
		seen := map[siltstone.ClusterID]bool{}
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				hook := faulty.Transparent
				switch (i + round) % 3 {
				case 1:
					hook = script(faulty.Put, faulty.LoseReply)
				case 2:
					hook = script(faulty.Put, dropped, refuse)
				}
				c := r.client(faulty.Wrap(r.store, hook), r.bucket)
				id, err := c.EnsureClusterID(context.Background(), siltstone.ClusterID{byte(i + 1)})
				if errors.Is(err, errRefused) {
					id, err = r.EnsureClusterID(context.Background(), siltstone.ClusterID{byte(i + 1)})
				}
				mu.Lock()
				defer mu.Unlock()
				seen[id] = true
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(seen) != 1 {
			t.Fatalf("they found %v", seen)
		}
	}
}

// Another may have started, and written, between any two looks.
func TestEnsureClusterIDOvertaken(t *testing.T) {
	for _, at := range []string{"get register", "get object", "list object", "put object", "put register"} {
		t.Run(at, func(t *testing.T) {
			r := newRig()
			var theirs siltstone.ClusterID
			another := sync.OnceFunc(func() {
				var err error
				if theirs, err = r.EnsureClusterID(t.Context(), idOne); err != nil {
					t.Error(err)
				}
				if err := r.bucket.Put(t.Context(), "0/first", bucket.Body{[]byte("x")}); err != nil {
					t.Error(err)
				}
			})
			overtake := func(now string) {
				if now == at {
					another()
				}
			}
			c := r.client(
				faulty.Wrap(r.store, func(ctx context.Context, c faulty.Call, do func(context.Context) error) error {
					overtake(string(c.Op) + " register")
					return do(ctx)
				}),
				bucketfaulty.Wrap(r.bucket, func(op bucketfaulty.Op, _ string) bucketfaulty.Fate {
					overtake(string(op) + " object")
					return bucketfaulty.Fate{}
				}))
			if id, err := c.EnsureClusterID(t.Context(), idTwo); err != nil || id != theirs {
				t.Errorf("%s, %v; the other has %s", id, err, theirs)
			}
		})
	}
}

func FuzzClusterID(f *testing.F) {
	f.Add([]byte(textOne))
	f.Add([]byte("siltstone 2 "))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := newRig()
		if err := r.bucket.Put(t.Context(), coordinator.ClusterKey, bucket.Body{text}); err != nil {
			t.Fatal(err)
		}
		id, err := r.EnsureClusterID(t.Context(), idTwo)
		switch {
		case err == nil && (id == siltstone.ClusterID{}):
			t.Fatal("the zero id")
		case err != nil && !errors.Is(err, siltstone.ErrForeign) && !errors.Is(err, siltstone.ErrNewerFormat):
			t.Fatalf("unclassed error: %v", err)
		}
	})
}
