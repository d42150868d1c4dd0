package kafka

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// decide makes a change of the cluster ledger, or, where it is only to be
// validated, does all but that. It returns what the last decision said beside
// itself; of a change that could not be made there may be none.
func decide[T any](ctx context.Context, s *Server, validateOnly bool, decision func(*topic.View) (topic.Decision, T)) (T, error) {
	if validateOnly {
		_, said := decision(s.topics.Topics())
		return said, nil
	}
	var mu sync.Mutex // where ctx ends first, a decision may still be asked for
	var last T
	err := s.topics.Change(ctx, func(v *topic.View) topic.Decision {
		d, said := decision(v)
		mu.Lock()
		defer mu.Unlock()
		last = said
		return d
	})
	mu.Lock()
	defer mu.Unlock()
	return last, err
}

// distinct says what the items of a request are about: each once, in the order in
// which it is first named, and how often. An answer has one part for each; what
// is named more than once is refused.
func distinct[T any, K comparable](items []T, about func(*T) K) (once []K, times map[K]int) {
	times = map[K]int{}
	for i := range items {
		k := about(&items[i])
		if times[k]++; times[k] == 1 {
			once = append(once, k)
		}
	}
	return once, times
}

// changeError is what became of one part of a change: refused by the decision,
// or not appended.
func changeError(appended error, refused []error, i int) error {
	if i < len(refused) && refused[i] != nil {
		return refused[i]
	}
	// An admin client is told NOT_CONTROLLER, on which it asks again, where a
	// partition's reader would hear that a store cannot be reached.
	if kafkaError(appended) == kerr.KafkaStorageError {
		return fmt.Errorf("%w: %w", kerr.NotController, appended)
	}
	return appended
}
