package faultproxy

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts()
		c.add("PutObject")
		time.Sleep(1900 * time.Millisecond)
		c.add("PutObject")
		c.add("GetObject")
		time.Sleep(200 * time.Millisecond)
		c.add("GetObject")
		if got := c.perSecond([]string{"PutObject"}); !slices.Equal(got, []int{1, 1}) {
			t.Errorf("PutObject: %v", got)
		}
		if got := c.perSecond(nil); !slices.Equal(got, []int{1, 2, 1}) {
			t.Errorf("all: %v", got)
		}
		c.reset()
		c.add("GetObject")
		if got := c.perSecond(nil); !slices.Equal(got, []int{1}) {
			t.Errorf("after a reset: %v", got)
		}
	})
}
