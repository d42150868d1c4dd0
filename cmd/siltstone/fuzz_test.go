package main

import (
	"fmt"
	"testing"
)

// FuzzStamp: whatever stands in a stamp, it is one of ours or refused, and a
// newer one is never taken.
func FuzzStamp(f *testing.F) {
	for _, stamp := range []string{"", stampPrefix, stampPrefix + "1\n", stampPrefix + "99", stampPrefix + "18446744073709551617"} {
		f.Add([]byte(stamp), uint16(0))
	}
	f.Fuzz(func(t *testing.T, stamp []byte, newer uint16) {
		_ = checkStamp(stamp)
		if err := checkStamp(fmt.Appendf(nil, "%s%d", stampPrefix, folderFormat+1+int(newer))); err == nil {
			t.Fatalf("format %d is taken", folderFormat+1+int(newer))
		}
	})
}
