package embedded

import (
	"fmt"
	"hash/crc32"

	"go.etcd.io/bbolt"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
)

// A value has its CRC, and a ledger no gaps; but neither would tell that the
// end of a ledger is missing, or all of it: where a page counts less than it
// has, where the number of a page is that of an older one, or of another
// ledger's, which is there and whole, where a ledger goes by another name. So
// the sequence of a ledger's bucket, which lies beside the number of its root,
// notes the last slot that was ever filled (the lower 40 bits), and a CRC of the
// ledger's name and that slot's value (the upper 24); and the sequence of the
// bucket of ledgers the sum of those slots. Files of earlier releases have zeros
// there, until a ledger is appended to. For registers the sequence of the bucket
// "siltstone" notes a sum over all of them, of version and 2^32 times the CRC of
// the key each.
//
// What is in the middle of a ledger its own hashes tell.

// noted is what a ledger's bucket says of its end.
type noted uint64

const (
	notedSlotBits = 40
	maxNotedSlot  = 1<<notedSlotBits - 1
)

func note(ledger []byte, last coordinator.Seq, value []byte) noted {
	crc := crc32.Update(crc32.Checksum(ledger, castagnoli), castagnoli, value)
	return noted(crc>>8)<<notedSlotBits | noted(min(last, maxNotedSlot))
}

func (n noted) slot() coordinator.Seq { return coordinator.Seq(n) & maxNotedSlot }

// noteEnd notes that a slot of a ledger is filled.
func noteEnd(all, b *bbolt.Bucket, ledger string, seq coordinator.Seq, value []byte) error {
	old := noted(b.Sequence())
	if seq < old.slot() || seq > maxNotedSlot {
		return nil
	}
	if err := b.SetSequence(uint64(note([]byte(ledger), seq, value))); err != nil {
		return err
	}
	return all.SetSequence(all.Sequence() + uint64(seq-old.slot()))
}

// checkWhole checks that nothing is missing that the pages could not tell, and
// all floors and registers.
func checkWhole(tx *bbolt.Tx) error {
	for _, name := range topBuckets {
		if tx.Bucket(name) == nil {
			return fmt.Errorf("bucket %q is missing: %w", name, siltstone.ErrCorrupt)
		}
	}
	if err := checkEnds(tx); err != nil {
		return err
	}
	floors := tx.Bucket(floorsBucket)
	err := floors.ForEach(func(ledger, _ []byte) error {
		_, err := floorOf(tx, string(ledger))
		return err
	})
	if err != nil {
		return err
	}
	sum, err := sumRegisters(tx)
	if had := tx.Bucket(metaBucket).Sequence(); err == nil && had != 0 && sum != had {
		err = fmt.Errorf("registers are missing, or older ones in their place: their sum is %x, and was %x: %w", sum, had, siltstone.ErrCorrupt)
	}
	return err
}

func sumRegisters(tx *bbolt.Tx) (sum uint64, err error) {
	err = tx.Bucket(registerBucket).ForEach(func(key, value []byte) error {
		r, err := decodeRegister(key, value)
		sum += r.share(key)
		return err
	})
	return sum, err
}

// share is the register's part of the sum; nothing before it is put.
func (r stored) share(key []byte) uint64 {
	if r.version == 0 {
		return 0
	}
	return r.version + uint64(crc32.Checksum(key, castagnoli))<<32
}

// notePut notes that a register has come in the place of another.
func notePut(tx *bbolt.Tx, key []byte, old, now stored) error {
	meta := tx.Bucket(metaBucket)
	return meta.SetSequence(meta.Sequence() - old.share(key) + now.share(key))
}

func checkEnds(tx *bbolt.Tx) error {
	all := tx.Bucket(ledgersBucket)
	sum := uint64(0)
	err := all.ForEach(func(name, _ []byte) error {
		b := all.Bucket(name)
		if b == nil {
			return fmt.Errorf("ledger %.64q is no bucket: %w", name, siltstone.ErrCorrupt)
		}
		end := noted(b.Sequence())
		sum += uint64(end.slot())
		floor, err := floorOf(tx, string(name))
		if end == 0 || err != nil || floor >= end.slot() { // all up to the floor may be gone
			return err
		}
		switch last := b.Get(seqKey(end.slot())); {
		case last == nil:
			err = fmt.Errorf("ledger %.64q went to entry %d, which is missing: %w", name, end.slot(), siltstone.ErrCorrupt)
		case end != note(name, end.slot(), last):
			err = fmt.Errorf("ledger %.64q had another name, or another entry %d: %w", name, end.slot(), siltstone.ErrCorrupt)
		}
		return err
	})
	if err == nil && sum < all.Sequence() {
		err = fmt.Errorf("ledgers are missing, or parts of them: they have %d entries in all, and had %d: %w", sum, all.Sequence(), siltstone.ErrCorrupt)
	}
	return err
}
