package main

import (
	"fmt"
	"slices"
	"strings"
)

// atRate is the part of a peer's throughput that counts as the same rate: both
// are the schedule's, but for when the last acknowledgement came.
const atRate = 0.99

// medians of a figure of a cell: Siltstone's and its peer's, if both are known.
func (r *Report) medians(c Cell, of column) (ours, peers float64, known bool) {
	var own, peer []float64
	for _, s := range r.Samples {
		switch {
		case s.Cell.String() != c.String():
		case s.System == siltstoneName:
			own = append(own, of.figure(s))
		case s.System == kafkaName:
			peer = append(peer, of.figure(s))
		}
	}
	if len(own) == 0 || len(peer) == 0 {
		return 0, 0, false
	}
	slices.Sort(own)
	slices.Sort(peer)
	return middle(own), middle(peer), true
}

// writingAim: a cell has at least Kafka's throughput, acknowledgements whose
// p99 is no worse and, where that is said, at most half its CPU.
func (r *Report) writingAim(c Cell) string {
	ours, peers, known := r.medians(c, writeMiB)
	if !known {
		return ""
	}
	var missed []string
	if c.Rate > 0 {
		peers *= atRate
	}
	if ours < peers {
		missed = append(missed, "throughput")
	}
	if ours, peers, _ := r.medians(c, ackP99); ours > peers {
		missed = append(missed, "ack p99")
	}
	if ours, peers, _ := r.medians(c, writeCPU); c.halfCPU() && ours > peers/2 {
		missed = append(missed, fmt.Sprintf("half the CPU, %s", digits(peers/2)))
	}
	return verdict(missed)
}

// tailAim: reading the tail costs no more CPU than with Kafka, where there is
// enough of it to tell.
func (r *Report) tailAim(c Cell) string {
	ours, peers, known := r.medians(c, tailCPU)
	if !known || c.Followers < 2 {
		return ""
	}
	if ours > peers {
		return verdict([]string{"tail CPU"})
	}
	return verdict(nil)
}

func verdict(missed []string) string {
	if len(missed) == 0 {
		return "met"
	}
	return "**missed**: " + strings.Join(missed, "; ")
}
