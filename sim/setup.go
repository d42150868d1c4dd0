package sim

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// createTopics asks until they exist.
func (s *scenario) createTopics() bool {
	msg := kmsg.NewPtrCreateTopicsRequest()
	msg.Version, msg.TimeoutMillis, msg.Topics = 7, 5000, s.topics
	return s.request("topics are created", msg, func(resp kmsg.Response) error { return created(resp.(*kmsg.CreateTopicsResponse)) })
}

// request asks until the answer is good.
func (s *scenario) request(what string, msg kmsg.Request, good func(kmsg.Response) error) bool {
	g := newGuide(s.world, "admin", s.hosts)
	done := false
	var ask func()
	ask = func() {
		g.to(g.first(), 1).ask(msg, true, func(resp kmsg.Response, err error) {
			if err == nil {
				err = good(resp)
			}
			if err != nil {
				s.tracef("admin: %v", err)
				g.turn++
				s.after(100*time.Millisecond, ask)
				return
			}
			done = true
		})
	}
	ask()
	return s.within(healTime, what, func() bool { return done })
}

func created(resp *kmsg.CreateTopicsResponse) error {
	const topicAlreadyExists = 36
	var errs []error
	for _, t := range resp.Topics {
		if t.ErrorCode != 0 && t.ErrorCode != topicAlreadyExists {
			errs = append(errs, fmt.Errorf("create %s: error %d", t.Topic, t.ErrorCode))
		}
	}
	return errors.Join(errs...)
}

// configure sets what the cluster's groups are to be like.
func (s *scenario) configure() bool {
	settings := [][2]string{
		{"group.initial.rebalance.delay.ms", strconv.Itoa([...]int{0, 200, 3000}[s.dice.below(3)])},
		{"group.min.session.timeout.ms", "1000"},
	}
	settings = append(settings, s.replicas...)
	if s.history.groups.expires {
		settings = append(settings, [2]string{"offsets.retention.check.interval.ms", "2000"})
	}
	msg := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType = kmsg.ConfigResourceTypeBroker
	for _, set := range settings {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Value = set[0], &set[1]
		r.Configs = append(r.Configs, c)
	}
	msg.Resources = append(msg.Resources, r)
	return s.request("the cluster's settings are made", msg, func(resp kmsg.Response) error {
		if code := resp.(*kmsg.IncrementalAlterConfigsResponse).Resources[0].ErrorCode; code != 0 {
			return kerr.ErrorForCode(code)
		}
		return nil
	})
}
