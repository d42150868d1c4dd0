package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func newSegment() *cobra.Command {
	return parent("segment", "Look into segments: the objects that hold records",
		"  siltstone segment verify siltstone-data/objects/*/*/*/*",
		newSegmentDump(), newSegmentVerify())
}

// readObject reads a segment from a file; in a data folder they are below objects/.
func readObject(file string) ([]byte, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w (segments of siltstone dev are below %s/%s)", err, defaultFolder, objectsName)
	}
	return b, nil
}
