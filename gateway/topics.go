package gateway

// GET /api/v1/topics, and GET, PUT, DELETE /api/v1/topics/{t}
//
// PUT says that there shall be such a topic: 201 where it is made, 200 where
// it was there with what is asked for, 409 where it was there and is another.

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/topic"
)

const (
	defaultTopics = 1000
	mostTopics    = 10_000
)

// topicShown is a topic as answers show it.
type topicShown struct {
	Name       string            `json:"name"`
	ID         string            `json:"topic_id"`
	Partitions int32             `json:"partitions"`
	CreatedMS  int64             `json:"created_ms"`
	Configs    map[string]string `json:"configs"` // its own, not the defaults
}

func shown(t *topic.Topic) topicShown {
	s := topicShown{Name: t.Name, ID: t.ID.String(), Partitions: t.Partitions, CreatedMS: t.CreatedMS, Configs: t.Configs}
	if s.Configs == nil {
		s.Configs = map[string]string{}
	}
	return s
}

// listTopics gives a page of the topics, sorted by name.
func (h *handler) listTopics(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	limit := int64(defaultTopics)
	if query.Has("limit") {
		var err error
		if limit, err = number("limit", query.Get("limit"), 1); err != nil {
			return err
		}
	}
	all, after := h.topics.Topics().All(), query.Get("after")
	from := sort.Search(len(all), func(i int) bool { return all[i].Name > after })
	if after == "" {
		from = 0
	}
	page := all[from:min(len(all), from+int(min(limit, mostTopics)))]
	hold := holding{of: &h.memory}
	defer hold.release()
	text, n, err := h.topicsPage(page, &hold)
	if err != nil {
		return err
	}
	next := "null" // these were the last
	if n > 0 && from+n < len(all) {
		next = strconv.Quote(page[n-1].Name) // of letters and digits
	}
	w.Header().Set("Content-Type", typeJSON)
	w.Header().Add("Vary", "Accept-Encoding")
	h.writeBody(w, r, &hold, []byte(`{"topics":[`), text, []byte(`],"next_after":`+next+"}\n"))
	return nil
}

// topicsPage is as many topics as there is room for, at least one.
func (h *handler) topicsPage(topics []*topic.Topic, hold *holding) (text []byte, n int, err error) {
	for i, t := range topics {
		one, err := json.Marshal(shown(t))
		if err != nil {
			return nil, 0, err
		}
		if i > 0 && len(text)+1+len(one) > h.limits.ReplyBytes {
			return text, i, nil
		}
		longer := text
		if i > 0 {
			longer = append(longer, ',')
		}
		longer = append(longer, one...)
		if err := hold.grow(cap(longer) - cap(text)); err != nil {
			if i > 0 { // what there is goes out, and makes room
				return text, i, nil
			}
			return nil, 0, err
		}
		text = longer
	}
	return text, len(topics), nil
}

func (h *handler) showTopic(w http.ResponseWriter, r *http.Request) error {
	t, err := h.topic(r)
	if err == nil {
		writeJSON(w, http.StatusOK, shown(t))
	}
	return err
}

// topicBytes is the largest body that describes a topic.
const topicBytes = 64 << 10

func (h *handler) createTopic(w http.ResponseWriter, r *http.Request) error {
	wanted, err := h.wantedTopic(w, r)
	if err != nil {
		return err
	}
	refused, err := h.change(r.Context(), func(v *topic.View) (topic.Decision, error) {
		d, errs := topic.Create(v, []topic.NewTopic{wanted})
		return d, errs[0]
	})
	existed := errors.Is(refused, topic.ErrExists)
	switch {
	case err != nil:
		return err
	case refused != nil && !existed:
		return refused
	}
	t, ok := h.topics.Topics().Topic(wanted.Name)
	if !ok {
		return fmt.Errorf("%w: %s was deleted again", errNoTopic, wanted.Name)
	}
	if !existed {
		w.Header().Set("Location", r.URL.Path)
		writeJSON(w, http.StatusCreated, shown(t))
		return nil
	}
	if err := differs(t, &wanted); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, shown(t))
	return nil
}

// differs says how a topic is not the one that is wanted.
func differs(t *topic.Topic, wanted *topic.NewTopic) error {
	if wanted.Partitions != -1 && wanted.Partitions != t.Partitions {
		return fmt.Errorf("%w: it has %d partitions, not %d", errTopicDiffers, t.Partitions, wanted.Partitions)
	}
	for _, c := range wanted.Configs {
		if has, ok := t.Configs[c.Name]; !ok || has != *c.Value {
			return fmt.Errorf("%w: its %s is not set to %s", errTopicDiffers, c.Name, *c.Value)
		}
	}
	return nil
}

// wantedTopic reads {"partitions":3,"replication_factor":3,"configs":{..}}.
// No body asks for the defaults.
func (h *handler) wantedTopic(w http.ResponseWriter, r *http.Request) (topic.NewTopic, error) {
	n := topic.NewTopic{Name: r.PathValue("topic"), Partitions: -1, Replication: -1, CreatedMS: time.Now().UnixMilli()}
	binary.BigEndian.PutUint64(n.ID[:8], h.random())
	binary.BigEndian.PutUint64(n.ID[8:], h.random())
	hold := holding{of: &h.memory}
	defer hold.release()
	body, err := h.body(r, &hold, min(topicBytes, h.limits.BodyBytes))
	if err != nil {
		return n, err
	}
	bodyRead(w)
	if body = trim(body); len(body) == 0 {
		return n, nil
	}
	if err := checkJSON(body); err != nil {
		return n, err
	}
	err = members(body, func(name string, value []byte) error { return setOfTopic(&n, name, value) })
	if wrong, ok := errors.AsType[*fieldError](err); ok {
		err = fmt.Errorf("%w: %w", errInvalidTopic, wrong)
	}
	return n, err
}

// setOfTopic sets what one field says.
func setOfTopic(n *topic.NewTopic, name string, value []byte) error {
	switch name {
	case "partitions":
		p, err := integer(name, value, 32)
		n.Partitions = int32(p)
		return err
	case "replication_factor":
		f, err := integer(name, value, 16)
		n.Replication = int16(f)
		return err
	case "configs":
		if value[0] != '{' {
			return fieldErrorf("configs is not an object")
		}
		return members(value, func(name string, value []byte) error {
			setting, err := settingOf(name, value)
			n.Configs = append(n.Configs, topic.Setting{Name: name, Value: &setting})
			return err
		})
	}
	return unknownMember(name, "a topic", "partitions, replication_factor and configs")
}

// settingOf is a setting's value: a string, or a number or a boolean as one.
func settingOf(name string, value []byte) (string, error) {
	switch value[0] {
	case '"':
		s, err := stringOf(name, value)
		return string(s), err
	case '{', '[', 'n':
		return "", &topic.ConfigError{Name: name, Reason: "its value is a string, a number or a boolean"}
	}
	return string(value), nil
}

func (h *handler) deleteTopic(w http.ResponseWriter, r *http.Request) error {
	t, err := h.topic(r)
	if err != nil {
		return err
	}
	refused, err := h.change(r.Context(), func(v *topic.View) (topic.Decision, error) {
		d, errs := topic.Delete(v, []siltstone.TopicID{t.ID})
		return d, errs[0]
	})
	if err := errors.Join(err, refused); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// change changes the topics. It returns why the last decision refused to,
// apart from why a decision could not be carried out.
func (h *handler) change(ctx context.Context, decide func(*topic.View) (topic.Decision, error)) (refused, err error) {
	ctx, cancel := context.WithDeadline(ctx, h.until(ctx, h.limits.Change))
	defer cancel()
	var mu sync.Mutex // where ctx ends first, a decision may still be asked for
	err = h.topics.Change(ctx, func(v *topic.View) topic.Decision {
		d, why := decide(v)
		mu.Lock()
		defer mu.Unlock()
		refused = why
		return d
	})
	mu.Lock()
	defer mu.Unlock()
	return refused, err
}
