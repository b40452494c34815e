//! TLS: one implementation of the cryptography, for whatever speaks it.

/// Makes `ring` what TLS in this process rests on. Libraries that are built together may each bring their own, and then
/// none of them would know which to take. Doing it again does nothing.
pub fn install() {
    let _installed_before = rustls::crypto::ring::default_provider().install_default();
}
