import Stemma

// Models in a namespace, which refer to their neighbors by their short names.

enum Garden {
  enum Light: String, KeyValue, CaseIterable { case shade, sun }
  enum Soil: Int, ColumnValue { case sand, clay }
  struct Note: Codable, Hashable { var text: String }

  @Table struct Bed {
    @Selection struct ID: Hashable {
      let light: Light
      let number: Int
    }
    @Selection struct Size {
      var base: Soil
      var width: Double?
    }
    let id: ID
    var light2: Light?
    var soil: Soil = .clay
    var ratings: [Soil]
    var size: Size
    @Column(as: [Note].JSONRepresentation.self) var notes: [Note]
    @Column(as: Note?.JSONRepresentation.self) var last: Note?
    @HasMany("bedLight", "bedNumber") var plants: Related<Plant>
    @HasOne("bedLight", "bedNumber") var oldest: Plant?
    @ManyToMany(through: Care.self) var gardeners: Related<Gardener>
  }

  @Table struct Plant {
    let id: UUID
    var bedLight: Light?
    var bedNumber: Int?
    @BelongsTo("bedLight", "bedNumber") var bed: Bed?
  }

  @Table struct Gardener {
    let id: UUID
    @ManyToMany(through: Care.self) var beds: Related<Bed>
  }

  @Table struct Care {
    @Selection struct ID: Hashable {
      let bedLight: Light
      let bedNumber: Int
      let gardenerId: UUID
    }
    let id: ID
    @BelongsTo("bedLight", "bedNumber") var bed: Bed
    @BelongsTo("gardenerId") var gardener: Gardener
  }
}

extension Garden {
  @Table struct Tool {
    let id: UUID
    var light: Light
    private var soil = 0
    @HasMany(\Part.toolId) var parts: Related<Part>
  }

  @Table struct Part {
    let id: UUID
    var toolId: UUID
    var light: Light?
    @BelongsTo(\Part.toolId) var tool: Tool
  }
}

func nestedModels(_ store: Store) async throws {
  let size = Garden.Bed.Size(base: .sand, width: nil)
  let bed = try await store.insert(
    Garden.Bed.Draft(light: .sun, number: 1, ratings: [.clay], size: size, notes: []))
  _ = try await store.insert(Garden.Plant.Draft(bed: bed))
  _ = try await Garden.Bed.where { $0.id.light == .sun && $0.soil == .clay }.fetchAll(store)
}
