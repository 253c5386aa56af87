"""ATA IDENTIFY DEVICE: the words about erase features (ACS-4)."""

from __future__ import annotations

import re
from dataclasses import dataclass

WORDS = 256
SECURITY, SECURITY_SECONDS, ENHANCED_SECONDS, SANITIZE, COMMANDS, MORE_COMMANDS = 128, 89, 90, 59, 82, 83
MINUTES = 60.0


@dataclass(frozen=True)
class Identity:
    """The 256 words of one answer."""

    words: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Identity:
        """Reads what `hdparm --Istdout` prints.

        Raises:
            ValueError: these are not 256 words.
        """
        lines = [line for line in text.splitlines() if not line.startswith("/dev/")]
        words = re.findall(r"\b[0-9a-fA-F]{4}\b", "\n".join(lines))
        if len(words) != WORDS:
            raise ValueError(f"hdparm told {len(words)} words of {WORDS} about the drive")
        return cls(tuple(int(word, 16) for word in words))

    def _bit(self, word: int, bit: int) -> bool:
        return bool(self.words[word] >> bit & 1)

    @property
    def security(self) -> bool:
        """Whether it has the Security feature set."""
        return self._bit(SECURITY, 0)

    @property
    def password_set(self) -> bool:
        """Whether a password is set, which locks the drive after the next power-on."""
        return self.security and self._bit(SECURITY, 1)

    @property
    def locked(self) -> bool:
        """Whether it rejects reads and writes until it is unlocked."""
        return self.security and self._bit(SECURITY, 2)

    @property
    def frozen(self) -> bool:
        """Whether it rejects security commands until the next power-on, as set by firmware."""
        return self.security and self._bit(SECURITY, 3)

    @property
    def enhanced_erase(self) -> bool:
        """Whether it knows the enhanced mode of SECURITY ERASE UNIT."""
        return self.security and self._bit(SECURITY, 5)

    @property
    def erase_seconds(self) -> float | None:
        """The drive's estimate for SECURITY ERASE UNIT, None without one."""
        return _seconds(self.words[SECURITY_SECONDS])

    @property
    def enhanced_seconds(self) -> float | None:
        """The same for the enhanced mode."""
        return _seconds(self.words[ENHANCED_SECONDS])

    @property
    def crypto_scramble(self) -> bool:
        """Whether it knows CRYPTO SCRAMBLE EXT."""
        return self.sanitize and self._bit(SANITIZE, 13)

    @property
    def overwrite(self) -> bool:
        """Whether it knows OVERWRITE EXT."""
        return self.sanitize and self._bit(SANITIZE, 14)

    @property
    def block_erase(self) -> bool:
        """Whether it knows BLOCK ERASE EXT."""
        return self.sanitize and self._bit(SANITIZE, 15)

    @property
    def sanitize(self) -> bool:
        """Whether it has the Sanitize Device feature set."""
        return self._bit(SANITIZE, 12)

    @property
    def host_protected_area(self) -> bool:
        """Whether sectors can be hidden behind a lower highest address."""
        return self._bit(COMMANDS, 10)

    @property
    def configuration_overlay(self) -> bool:
        """Whether sectors can be hidden by a Device Configuration Overlay."""
        return self._bit(MORE_COMMANDS, 11)


def _seconds(word: int) -> float | None:
    """Bit 15 says that the number has fifteen bits and not eight; it counts two minutes each."""
    count = word & (0x7FFF if word & 0x8000 else 0xFF)
    return count * 2 * MINUTES or None
