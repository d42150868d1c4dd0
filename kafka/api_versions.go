package kafka

// ApiVersions (key 18), v0 to v5.
//
// Answers from the table of APIs. A request of a newer version than ours is
// not parsed beyond its header: it is answered as v0 with UNSUPPORTED_VERSION
// and the whole table, and the connection lives on (KIP-511). From v3 on a
// client names its software; a name or version of the wrong form is
// INVALID_REQUEST. From v5 on it may say which cluster and node it means:
// REBOOTSTRAP_REQUIRED if it got another one, INVALID_REQUEST if it names only
// one of the two (KIP-1242). There are no features to negotiate (KIP-584).

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func startAPIVersions(c *conn, r *request) (answer, error) {
	s := r.server
	if !r.api.serves(r.version) {
		s.refuse(kerr.UnsupportedVersion)
		r.version = 0
		return callAnswer(func(_ context.Context, out *outbox) error {
			out.message(r, s.apiVersions(kerr.UnsupportedVersion))
			return nil
		}), nil
	}
	q := kmsg.NewPtrApiVersionsRequest()
	if err := decode(q, r); err != nil {
		return nil, err
	}
	if r.version >= 3 {
		s.logger.Debug("client", "conn", c.id, "software", q.ClientSoftwareName, "version", q.ClientSoftwareVersion)
	}
	return callAnswer(func(_ context.Context, out *outbox) error {
		out.message(r, s.apiVersions(s.checkClient(q)))
		return nil
	}), nil
}

func (s *Server) checkClient(q *kmsg.ApiVersionsRequest) error {
	if q.Version >= 3 && !(softwareName(q.ClientSoftwareName) && softwareName(q.ClientSoftwareVersion)) {
		return kerr.InvalidRequest
	}
	if q.Version < 5 || q.ClusterID == nil && q.NodeID == -1 {
		return nil
	}
	if q.ClusterID == nil || q.NodeID == -1 {
		return kerr.InvalidRequest
	}
	if info := s.cluster.Describe(); *q.ClusterID != info.ID || q.NodeID != info.Self {
		return kerr.RebootstrapRequired
	}
	return nil
}

func (s *Server) apiVersions(err error) *kmsg.ApiVersionsResponse {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = s.refuse(err)
	if errors.Is(err, kerr.InvalidRequest) {
		return resp
	}
	for _, a := range s.apis {
		if a == nil {
			continue
		}
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MinVersion, k.MaxVersion = a.key.Int16(), a.min, a.max
		resp.ApiKeys = append(resp.ApiKeys, k)
	}
	return resp
}

// softwareName is KIP-511's [a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?
func softwareName(name string) bool {
	for i := range len(name) {
		c := name[i]
		inner := 0 < i && i < len(name)-1
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case inner && (c == '-' || c == '.'):
		default:
			return false
		}
	}
	return name != ""
}
