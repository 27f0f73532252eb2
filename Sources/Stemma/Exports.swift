@_exported import enum StemmaNode.ErrorCode
@_exported import protocol StemmaSync.Transport
@_exported import struct StemmaSync.SyncPeer

#if canImport(FoundationEssentials)
  @_exported import struct FoundationEssentials.Data
  @_exported import struct FoundationEssentials.Date
  @_exported import struct FoundationEssentials.Decimal
  @_exported import struct FoundationEssentials.URL
  @_exported import struct FoundationEssentials.UUID
#else
  @_exported import struct Foundation.Data
  @_exported import struct Foundation.Date
  @_exported import struct Foundation.Decimal
  @_exported import struct Foundation.URL
  @_exported import struct Foundation.UUID
#endif
