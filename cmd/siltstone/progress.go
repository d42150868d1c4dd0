package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// progressBytes is the unit that is shown as KiB, MiB and so on.
const progressBytes = "bytes"

// progressLine is a bar, how much of how much is done, and how long the rest
// takes if it goes on like this.
func progressLine(unit string, done, total int64, took time.Duration) string {
	const width = 24
	done = min(done, total)
	filled := int(done * width / total)
	of := fmt.Sprintf("%s of %s %s", humanize.Comma(done), humanize.Comma(total), unit)
	if unit == progressBytes {
		of = fmt.Sprintf("%s of %s", humanize.IBytes(uint64(done)), humanize.IBytes(uint64(total)))
	}
	line := fmt.Sprintf("[%s%s] %d %%, %s", strings.Repeat("#", filled), strings.Repeat(".", width-filled), done*100/total, of)
	if done > 0 && done < total {
		line += ", " + roughly(took.Seconds()/float64(done)*float64(total-done)) + " left"
	}
	return line
}
