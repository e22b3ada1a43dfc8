// Package keyring keeps secrets in the keyring of the user's session: the secret service of a Linux desktop (GNOME's
// keyring, KWallet, KeePassXC) over D-Bus, the keychain of macOS, the credential manager of Windows.
//
// It keeps one text under one name and knows nothing of what it means; contexts call it. It falls back to nothing:
// where there is no keyring that is an error, which names what to do instead.
package keyring
