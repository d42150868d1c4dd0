package faultproxy

import (
	"slices"
	"sync"
	"time"
)

// counts are the requests that came, by operation and second.
type counts struct {
	mu      sync.Mutex
	since   time.Time
	seconds map[string][]int // the nth second since
}

func newCounts() *counts { return &counts{since: time.Now(), seconds: map[string][]int{}} }

func (c *counts) add(operation string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	second := int(time.Since(c.since) / time.Second)
	s := c.seconds[operation]
	if n := second + 1 - len(s); n > 0 {
		s = append(s, make([]int, n)...)
		c.seconds[operation] = s
	}
	s[second]++
}

func (c *counts) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since, c.seconds = time.Now(), map[string][]int{}
}

// perSecond adds up operations; none is all.
func (c *counts) perSecond(operations []string) []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sum []int
	for operation, seconds := range c.seconds {
		if len(operations) > 0 && !slices.Contains(operations, operation) {
			continue
		}
		if n := len(seconds) - len(sum); n > 0 {
			sum = append(sum, make([]int, n)...)
		}
		for i, n := range seconds {
			sum[i] += n
		}
	}
	return sum
}

func (c *counts) all() map[string][]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string][]int{}
	for operation, seconds := range c.seconds {
		all[operation] = slices.Clone(seconds)
	}
	return all
}

func total(seconds []int) int {
	sum := 0
	for _, n := range seconds {
		sum += n
	}
	return sum
}
