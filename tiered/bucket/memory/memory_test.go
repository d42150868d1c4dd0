package memory_test

import (
	"testing"

	"github.com/siltstone-io/siltstone/tiered/bucket"
	"github.com/siltstone-io/siltstone/tiered/bucket/buckettest"
	"github.com/siltstone-io/siltstone/tiered/bucket/memory"
)

func TestSuite(t *testing.T) {
	buckettest.Run(t, func(*testing.T) bucket.Bucket { return memory.New() })
}
