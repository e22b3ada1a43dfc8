// Package secrets keeps passwords where only their owner reads them.
//
// Contexts keep them in the keyring of the user's session: the secret service of a Linux desktop (GNOME's keyring,
// KWallet, KeePassXC) over D-Bus, the keychain of macOS, or the credential manager of Windows. Without a keyring that
// is an error, which says what to do instead.
//
// Activations carry them sealed, because their parameters pass through OpenWhisk's queue and logs in clear. The program
// that starts an action seals them with a [Key] that only the code of this action has.
package secrets
