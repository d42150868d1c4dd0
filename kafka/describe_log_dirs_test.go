package kafka

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/kafka/batch"
)

func TestDescribeLogDirs(t *testing.T) {
	f := start(t, func(_ *fixture, o *Options) { o.LogDir = "s3://silt/prod" })
	one, two := oneBatch(t, batch.None, "a"), oneBatch(t, batch.None, "longer")
	c := f.dial()
	b := f.create("b", 2)
	f.create("a", 1)
	for range 2 {
		wantNoError(t, ask[*kmsg.ProduceResponse](c, 9, produce(b, -1, one, two)))
	}
	b0, b1 := fmt.Sprint("b-0 ", 2*len(one)), fmt.Sprint("b-1 ", 2*len(two))
	asked := func(name string, partitions ...int32) kmsg.DescribeLogDirsRequestTopic {
		rt := kmsg.NewDescribeLogDirsRequestTopic()
		rt.Topic, rt.Partitions = name, partitions
		return rt
	}
	for version := int16(1); version <= 5; version++ {
		for _, tt := range []struct {
			topics []kmsg.DescribeLogDirsRequestTopic
			want   []string
		}{
			{nil, []string{"a-0 0", b0, b1}},
			{[]kmsg.DescribeLogDirsRequestTopic{}, nil},
			{[]kmsg.DescribeLogDirsRequestTopic{asked("b", 1, 9, 1), asked("nowhere", 0), asked("b", 1)}, []string{b1}},
			{[]kmsg.DescribeLogDirsRequestTopic{asked("nowhere", 0)}, nil},
		} {
			q := kmsg.NewPtrDescribeLogDirsRequest()
			q.Topics = tt.topics
			resp := ask[*kmsg.DescribeLogDirsResponse](c, version, q)
			if resp.ErrorCode != 0 || len(resp.Dirs) != 1 {
				t.Fatalf("v%d: %+v", version, resp)
			}
			dir := resp.Dirs[0]
			if dir.Dir != "s3://silt/prod" || dir.ErrorCode != 0 || dir.TotalBytes != -1 || dir.UsableBytes != -1 || dir.IsCordoned {
				t.Errorf("v%d: %+v", version, dir)
			}
			var got []string
			for _, rt := range dir.Topics {
				for _, rp := range rt.Partitions {
					got = append(got, fmt.Sprintf("%s-%d %d", rt.Topic, rp.Partition, rp.Size))
					if rp.OffsetLag != 0 || rp.IsFuture {
						t.Errorf("v%d: %+v", version, rp)
					}
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("v%d, %v: %q, want %q", version, tt.topics, got, tt.want)
			}
		}
		f.admin.failWith(siltstone.ErrUnavailable)
		dir := ask[*kmsg.DescribeLogDirsResponse](c, version, kmsg.NewPtrDescribeLogDirsRequest()).Dirs[0]
		if errorName(dir.ErrorCode) != "KAFKA_STORAGE_ERROR" || len(dir.Topics) != 0 {
			t.Errorf("v%d, without an answer: %+v", version, dir)
		}
		f.admin.failWith(nil)
	}
}
